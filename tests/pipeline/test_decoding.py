"""`decode` and `score` end to end, on made-up lists and models with chance weights.

The truth is computed here: lines taken apart by hand, log-probabilities by `lm.scoring.after`,
best paths by writing out all paths.
"""

import gzip
import io
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from support.files import write, write_weights
from support.models import OF_TEXT_ALONE

from decoders.search import Options
from lm.checkpoint import load_model, save_model
from lm.engine import ScoringEngine
from lm.rows import Rows
from lm.scoring import after
from lm.trie import Candidates
from rerank.errors import InputError, RerankError, UsageError
from rerank.notices import Notices, RerankWarning
from rerank.pipeline import CorpusResult, Lists, Reports, Scoring, Search, decode, perplexity, score

WORDS = ("the", "a", "lamp", "is", "lit", "it", "she", "gives", "light", "burns", "unheard")
WEIGHTS = {"LM0": [0.5], "TM0": [0.25, 0.125], "lm": [1.5], "lmoov": [-0.5]}
SPARSE = {"tag_x": 0.75}
SIZES = {"evening": 4, "gap": 1, "night": 5, "town": 3}  # sentences of each document
HOLES = {2, 4, 8}  # one of them is all of the document "gap"
every_model = pytest.mark.parametrize("name", OF_TEXT_ALONE)


@dataclass(frozen=True)
class Line:
    """A line of a list, taken apart by hand."""

    sentence: int
    text: str
    dense: tuple[float, ...]  # all values, in order
    sparse: dict[str, float]
    total: float
    rest: tuple[str, ...]

    @classmethod
    def of(cls, line: str) -> "Line":
        number, text, features, total, *rest = line.split(" ||| ")
        dense, sparse, label = [], {}, ""
        for token in features.split():
            if token.endswith("="):
                label = token[:-1]
            elif "_" in label:
                sparse[label] = float(token)
            else:
                dense.append(float(token))
        return cls(int(number), text, tuple(dense), sparse, float(total), tuple(rest))


def made_up(seed: int = 3) -> list[str]:
    """Lists of one to four candidates, some of them twice, some empty, some sentences without."""
    rng = np.random.default_rng(seed)
    lines = []
    for t in range(sum(SIZES.values())):
        texts = [" ".join(rng.choice(WORDS, rng.integers(0, 6))) for _ in range(1 + t % 4)]
        for k, text in enumerate([*texts, texts[0]][: 4 - t % 2]):
            lm, *tm = -rng.integers(8, 80, 3) / 8
            tag = f" tag_x= {rng.integers(-8, 8) / 4}" if rng.random() < 0.4 else ""
            features = f"LM0= {lm} TM0= {tm[0]} {tm[1]}{tag}"
            if t not in HOLES:
                lines.append(f"{t} ||| {text} ||| {features} ||| {-k - 1} ||| {k}-{k}  2-1 ||| x=y")
    return lines


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a list, its documents and weights."""
    monkeypatch.chdir(tmp_path)
    write("dev.kbest", made_up())
    write("dev.docs", [name for name, size in SIZES.items() for _ in range(size)])
    weigh(WEIGHTS)
    return tmp_path


def weigh(weights: Mapping[str, Sequence[float]]) -> None:
    write_weights("w.json", weights, sparse=SPARSE)


def lines_of(name: str) -> list[str]:
    text = Path(name).read_text(encoding="utf-8")
    assert text.endswith("\n")
    return text[:-1].split("\n")


def by_sentence(lines: Sequence[str]) -> list[list[Line]]:
    """The lists of all source sentences."""
    lists: list[list[Line]] = [[] for _ in range(sum(SIZES.values()))]
    for line in map(Line.of, lines):
        lists[line.sentence].append(line)
    return lists


def by_document(lists: Sequence[Any]) -> dict[str, Sequence[Any]]:
    bounds = np.cumsum([0, *SIZES.values()]).tolist()
    return {name: lists[a:b] for name, (a, b) in zip(SIZES, pairwise(bounds), strict=True)}


def static(line: Line) -> float:
    """What the list's own features are worth."""
    own = np.dot(line.dense[:3], [*WEIGHTS["LM0"], *WEIGHTS["TM0"]])
    return float(own) + sum(SPARSE[name] * value for name, value in line.sparse.items())


def decoded(
    folder: Path | None, search: Search | None = None, kbest: str = "dev.kbest", **options: Any
) -> CorpusResult:
    """`decode` into out.txt, out.kbest and out.json."""
    result = decode(
        Lists(kbest, **{"docs": "dev.docs", "lms": (("lm", folder),) if folder else (), **options}),
        "w.json",
        "out.txt",
        search=search or Search(),
        reports=Reports("out.kbest", "out.json"),
        notices=Notices(),
    )
    assert result is not None
    return result


def paths_of(result: CorpusResult) -> dict[str, tuple[int | None, ...]]:
    return {document.id: document.choices for document in result.documents}


class Reader:
    """A model read back from its folder, which scores lists after contexts."""

    def __init__(self, folder: Path) -> None:
        saved = load_model(folder)
        self.model, self.scorer = saved.model, ScoringEngine.of(saved.model)
        self.encode = saved.vocabulary.encode

    def oov(self, text: str) -> int:
        return self.encode(text.encode().split()).count(0)

    def after(self, ids: list[list[int]], contexts: Rows) -> tuple[NDArray[Any], Rows]:
        (found,) = after(self.scorer, [(Candidates.of([ids]), contexts)])
        return found

    def under(
        self, lists: Sequence[Sequence[Line]], path: Sequence[int | None]
    ) -> list[list[float]]:
        """Log-probabilities of all candidates of a document after a path's choices."""
        context = self.model.context.start(1)
        seen: list[list[float]] = []
        for candidates, choice in zip(lists, path, strict=True):
            if choice is None:
                seen.append([])
                continue
            ids = [self.encode(line.text.encode().split()) for line in candidates]
            scores, summaries = self.after(ids, context)
            context = self.model.context.advance(
                context, summaries.take(slice(choice, choice + 1))
            ).detach()
            seen.append(scores[0].tolist())
        return seen

    def all_paths(self, lists: Sequence[Sequence[Line]]) -> dict[tuple[int | None, ...], float]:
        """The score of every path of a document under `WEIGHTS`."""
        paths: list[tuple[tuple[int | None, ...], float]] = [((), 0.0)]
        contexts = self.model.context.start(1)
        (lm,), (oov,) = WEIGHTS["lm"], WEIGHTS["lmoov"]
        for candidates in lists:
            if not candidates:
                paths = [((*path, None), total) for path, total in paths]
                continue
            ids = [self.encode(line.text.encode().split()) for line in candidates]
            scores, summaries = self.after(ids, contexts)
            own = [static(line) + oov * self.oov(line.text) for line in candidates]
            paths = [
                ((*path, k), total + own[k] + lm * float(scores[n, k]))
                for n, (path, total) in enumerate(paths)
                for k in range(len(candidates))
            ]
            before = contexts.repeat_interleave(len(candidates))
            contexts = self.model.context.advance(before, summaries).detach()
        return dict(paths)


# What is written


@every_model
def test_every_source_sentence_gets_one_line(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    result = decoded(model_folders[name])
    choices = [choice for document in result.documents for choice in document.choices]
    expected = [
        "" if choice is None else candidates[choice].text
        for choice, candidates in zip(choices, by_sentence(made_up()), strict=True)
    ]
    assert lines_of("out.txt") == expected
    assert {t for t, choice in enumerate(choices) if choice is None} == HOLES


@every_model
def test_the_list_is_written_back_with_features_under_the_decoded_path_and_new_totals(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    paths = paths_of(decoded(model_folders[name]))
    before, behind = made_up(), lines_of("out.kbest")
    assert len(before) == len(behind)
    for old, new in zip(before, behind, strict=True):  # bytes
        number, text, features, _, *rest = old.split(" ||| ")
        assert new.startswith(f"{number} ||| {text} ||| {features} lm= ")
        assert new.endswith(" ||| ".join(["", *rest]))
    reader, weights = Reader(model_folders[name]), np.concatenate(list(WEIGHTS.values()))
    for document, lists in by_document(by_sentence(behind)).items():
        truth = reader.under(lists, paths[document])
        for candidates, log_probs in zip(lists, truth, strict=True):
            for line, log_prob in zip(candidates, log_probs, strict=True):
                assert line.dense[3] == pytest.approx(log_prob, abs=2e-4)
                assert line.dense[4] == reader.oov(line.text)
                total = float(weights @ line.dense) + sum(
                    SPARSE[n] * value for n, value in line.sparse.items()
                )
                assert line.total == pytest.approx(total, rel=1e-7)


@every_model
def test_the_summary_says_what_was_chosen_and_what_it_is_worth(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    result = decoded(model_folders[name])
    summary = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert summary == json.loads(json.dumps(result.to_dict()))
    assert summary["schema"] == 1
    assert [document["id"] for document in summary["documents"]] == list(SIZES)
    written = by_document(by_sentence(lines_of("out.kbest")))
    reader = Reader(model_folders[name])
    for document in summary["documents"]:
        lists, path = written[document["id"]], document["choices"]
        chosen = [c[k].total for c, k in zip(lists, path, strict=True) if k is not None]
        assert document["score"] == pytest.approx(sum(chosen), rel=1e-6)
        first = tuple(0 if candidates else None for candidates in lists)
        truth = reader.all_paths(lists)[first]
        assert document["baseline_score"] == pytest.approx(truth, rel=1e-5)
        assert document["score"] >= document["baseline_score"] or not document["exact"]
    assert summary["score"] == sum(document["score"] for document in summary["documents"])
    assert summary["sentences"] == sum(SIZES.values())
    assert summary["changed"] == sum(1 for d in result.documents for c in d.choices if c)
    assert [d["search"] for d in summary["documents"] if d["id"] == "gap"] == ["none"]


# What is chosen


@every_model
def test_exact_search_finds_the_best_of_all_paths(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    """Viterbi for orders 0 and 1; for the others a beam that drops nothing."""
    result = decoded(model_folders[name], Search(options=Options(width=1000)))
    lists = by_document(by_sentence(made_up()))
    reader = Reader(model_folders[name])
    for document in result.documents:
        scores = reader.all_paths(lists[document.id])
        best = max(scores.values())
        assert document.exact
        assert document.score == pytest.approx(best, rel=1e-5)
        assert scores[document.choices] == pytest.approx(best, rel=1e-5)
    changed = [choice for document in result.documents for choice in document.choices if choice]
    assert len(changed) > 3


def test_without_models_each_sentence_gets_its_best_candidate_the_first_of_equal_ones(
    here: Path,
) -> None:
    weigh({label: WEIGHTS[label] for label in ("LM0", "TM0")})
    paths = paths_of(decoded(None))
    for document, lists in by_document(by_sentence(made_up())).items():
        best = [
            int(np.argmax([static(line) for line in candidates])) if candidates else None
            for candidates in lists
        ]
        assert paths[document] == tuple(best)


@pytest.mark.parametrize("name", ["codclm", "hrnnlm"])
def test_the_order_of_the_documents_changes_no_choice(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    expected = paths_of(decoded(model_folders[name], Search(options=Options(width=3))))
    documents = by_document(range(13))
    places = [t for document in reversed(SIZES) for t in documents[document]]
    lines = [line.split(" ", 1) for line in made_up()]
    moved = [
        f"{new} {rest}"
        for new, old in enumerate(places)
        for number, rest in lines
        if int(number) == old
    ]
    write("dev.kbest", moved)
    write("dev.docs", [name for name in reversed(SIZES) for _ in range(SIZES[name])])
    found = paths_of(decoded(model_folders[name], Search(options=Options(width=3))))
    assert found == expected
    assert list(found) == list(reversed(expected))


@pytest.mark.parametrize(("form", "ids"), [("each", range(13)), ("one", [0] * 13)])
@pytest.mark.parametrize("name", ["codclm", "drnnlm"])
def test_no_docs_is_a_file_that_says_the_same(
    here: Path, model_folders: Mapping[str, Path], name: str, form: str, ids: Sequence[int]
) -> None:
    one = decoded(model_folders[name], docs=None, no_docs=form)
    written = [Path(file).read_bytes() for file in ("out.txt", "out.kbest")]
    write("dev.docs", [str(i) for i in ids])
    two = decoded(model_folders[name])
    assert [d.choices for d in one.documents] == [d.choices for d in two.documents]
    assert written == [Path(file).read_bytes() for file in ("out.txt", "out.kbest")]


@pytest.mark.parametrize("top", [1, 2])
def test_top_is_decoding_of_the_first_candidates(
    here: Path, model_folders: Mapping[str, Path], top: int
) -> None:
    one = decoded(model_folders["codclm"], top=top)
    written = Path("out.kbest").read_bytes()
    kept: dict[str, int] = {}
    lines = []
    for line in made_up():
        number = line.split(" ")[0]
        kept[number] = kept.get(number, 0) + 1
        if kept[number] <= top:
            lines.append(line)
    write("dev.kbest", lines)
    two = decoded(model_folders["codclm"])
    assert one.documents == two.documents
    assert written == Path("out.kbest").read_bytes()


def test_the_signature_names_search_lists_model_weights_and_documents(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    found = decoded(model_folders["codclm"], top=2).signature
    wide, narrow = (
        decoded(model_folders["ccdclm"], search=Search("beam", Options(width=width))).signature
        for width in (3, 1)
    )
    assert ("|beam:3|" in wide, "|beam:1|" in narrow) == (True, True)
    parts = r"rerank\|search:viterbi\|exact:yes\|k:2\|ctx:1\|lm:\w+=\w{8}\|w:\w{8}\|docs:\w{8}\|v:"
    assert re.match(parts, found)


def test_the_lists_total_may_be_a_feature(here: Path) -> None:
    """Totals fall within each list, so that their opposite chooses the last candidates."""
    weights: dict[str, Sequence[float]] = {"LM0": [0], "TM0": [0, 0], "total": [-1.0]}
    weigh(weights)
    lines = [line.replace("tag_x=", "tag_z=") for line in made_up()]
    write("dev.kbest", lines)
    for document in decoded(None).documents:
        lists = by_document(by_sentence(lines))[document.id]
        assert document.choices == tuple(len(c) - 1 if c else None for c in lists)
    for old, new in zip(lines, lines_of("out.kbest"), strict=True):
        assert Line.of(new).total == -Line.of(old).total
        assert Line.of(new).dense == Line.of(old).dense


# Files


def test_lists_that_lie_in_files_give_the_same_bytes(
    here: Path, model_folders: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decoding and scoring with `--memory 1`."""
    lms = (("lm", model_folders["codclm"]),)
    monkeypatch.setattr("rerank.files.arrays.SMALL", 1)
    for name, scoring in (("a", Scoring()), ("b", Scoring(memory=1))):
        lists, said = Lists("dev.kbest", "dev.docs", lms=lms, scoring=scoring), list[str]()
        reports = Reports(kbest=f"{name}.kbest", summary=f"{name}.json", trace=f"{name}.trace")
        decode(
            lists, "w.json", f"{name}.out", reports=reports, notices=Notices(), announce=said.append
        )
        score(lists, f"{name}.scored", notices=Notices(), announce=said.append)
        in_files = [line for line in said if line.startswith("candidates that did not fit")]
        assert len(in_files) == (2 if name == "b" else 0)
    for kind in ("kbest", "json", "trace", "out", "scored"):
        assert Path(f"a.{kind}").read_bytes() == Path(f"b.{kind}").read_bytes()


def test_compressed_files_and_standard_streams_hold_the_same(
    here: Path,
    model_folders: Mapping[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    decoded(model_folders["codclm"])
    text, rescored = (Path(name).read_bytes() for name in ("out.txt", "out.kbest"))
    packed = gzip.compress(Path("dev.kbest").read_bytes())
    Path("dev.kbest.gz").write_bytes(packed)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    lms = (("lm", model_folders["codclm"]),)
    capfdbinary.readouterr()
    for kbest, out in (("dev.kbest.gz", "out.gz"), ("-", "-")):
        lists = Lists(kbest, "dev.docs", lms=lms)
        decode(lists, "w.json", out, reports=Reports("out.kbest.gz"), notices=Notices())
        assert gzip.decompress(Path("out.kbest.gz").read_bytes()) == rescored
    assert gzip.decompress(Path("out.gz").read_bytes()) == text
    assert capfdbinary.readouterr().out == text


def test_a_dry_run_says_what_there_is_to_do_and_writes_nothing(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    before, said = sorted(here.iterdir()), list[str]()
    lists = Lists("dev.kbest", "dev.docs", lms=(("lm", model_folders["ccdclm"]),))
    found = decode(
        lists, "w.json", "out.txt", dry_run=True, notices=Notices(), announce=said.append
    )
    assert found is None
    assert sorted(here.iterdir()) == before
    assert (
        said[0] == "search: beam of width 8, not exact for a problem of unbounded order, O(T B K)"
    )
    assert said[1].startswith("4 documents, 13 sentences, ")


@every_model
def test_a_broken_model_is_named_with_the_document_and_nothing_is_written(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    saved = load_model(model_folders[name])
    with torch.no_grad():
        saved.model.embedding.weight[3] = torch.nan  # of "the"
    save_model(here / "broken", saved.model, saved.vocabulary, {}, saved.side)
    write("dev.kbest", [line.replace("the", "a") if line[0] < "5" else line for line in made_up()])
    before = sorted(here.iterdir())
    with pytest.raises(
        RerankError, match=r"scorer 'lm', document '(evening|night)': .*NaN"
    ) as told:
        decoded(here / "broken")
    assert told.value.exit_code == 1
    assert sorted(here.iterdir()) == before


def test_strict_writes_nothing_where_the_model_knows_too_few_words(
    here: Path, model_folders: Mapping[str, Path]
) -> None:
    write("dev.kbest", [line.replace("lamp", "lampe").replace("is", "ist") for line in LONE])
    write("dev.docs", ["x", "x"])
    before = sorted(here.iterdir())
    lists = Lists("dev.kbest", "dev.docs", lms=(("lm", model_folders["rnnlm"]),))
    told = r"word unknown to lm \(60\.0% of .*--strict"
    with pytest.raises(InputError, match=told):
        decode(lists, "w.json", "out.txt", notices=Notices(strict=True))
    with pytest.raises(InputError, match=told):
        score(lists, "out.scored", notices=Notices(strict=True))
    assert sorted(here.iterdir()) == before


LONE = (
    "0 ||| lamp is lamp ||| LM0= 0 TM0= 0 0 ||| 0",
    "0 ||| lit ||| LM0= 0 TM0= 0 0 ||| 0",
    "1 ||| it ||| LM0= 0 TM0= 0 0 ||| 0",
)


def test_totals_made_with_other_weights_are_no_reason_for_a_notice(here: Path) -> None:
    """After tuning they always are; `--strict` would refuse every decoding."""
    weigh({"LM0": [3.0], "TM0": [1.0, 2.0]})
    decode(Lists("dev.kbest", "dev.docs"), "w.json", "out.txt", notices=(found := Notices()))
    assert not any("total" in line for line in found.lines())


def test_what_decode_says_goes_to_warnings_and_the_logger_unless_it_is_taken(
    here: Path, caplog: pytest.LogCaptureFixture
) -> None:
    weigh({label: WEIGHTS[label] for label in ("LM0", "TM0")})
    write("dev.kbest", [line for line in made_up() if not line.startswith("1 ")])
    with caplog.at_level("INFO", logger="rerank"), pytest.warns(RerankWarning) as warned:
        decode(Lists("dev.kbest", "dev.docs"), "w.json", "out.txt")
    assert any("source line without hypotheses" in str(one.message) for one in warned)
    assert caplog.messages[0].startswith("search: viterbi")


@pytest.mark.parametrize(("bonus", "told"), [(3.0, True), (0.5, False)])
def test_the_list_written_says_in_how_many_sentences_its_totals_do_not_choose(
    here: Path, bonus: float, told: bool
) -> None:
    """In the first sentence the worse candidate is chosen for what it makes of the second."""
    write(
        "dev.kbest", ["0 ||| a ||| x= 1 ||| 0", "0 ||| b ||| x= 0 ||| 0", "1 ||| c ||| x= 0 ||| 0"]
    )
    write("dev.docs", ["d", "d"])
    pairs = ["d\t0\t-\t0\t0", "d\t0\t-\t1\t0", "d\t1\t0\t0\t0", f"d\t1\t1\t0\t{bonus}"]
    write("dev.pairs", pairs)
    Path("w.json").write_text('{"x": 1, "p": 1}')
    lists = Lists("dev.kbest", "dev.docs", score_files={"pair-scores": (("p", Path("dev.pairs")),)})
    said: list[str] = []
    reports = Reports(kbest="out.kbest")
    decode(lists, "w.json", "out.txt", reports=reports, notices=Notices(), announce=said.append)
    assert lines_of("out.txt")[0] == ("b" if told else "a")
    assert (
        any(
            line.startswith("--kbest-out: sentences in which another candidate has a larger total")
            for line in said
        )
        == told
    )


# Searches that do not serve


@pytest.mark.parametrize("name", ["ccdclm", "drnnlm", "hrnnlm"])
def test_viterbi_does_not_serve_models_of_unbounded_order(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    with pytest.raises(UsageError, match=r"--search viterbi: .*beam"):
        decoded(model_folders[name], Search("viterbi"))


def test_exhaustive_search_refuses_documents_of_too_many_paths(here: Path) -> None:
    weigh({label: WEIGHTS[label] for label in ("LM0", "TM0")})
    write("dev.kbest", [f"{t} ||| it ||| LM0= 0 TM0= 0 0 ||| 0" for t in range(20) for _ in "ab"])
    write("dev.docs", ["one"] * 20)
    with pytest.raises(UsageError, match=r"--search exhaustive: .*at most 1,000,000 paths"):
        decoded(None, Search("exhaustive"))


def test_a_beam_has_a_width(here: Path, model_folders: Mapping[str, Path]) -> None:
    with pytest.raises(UsageError, match=r"--search beam: expected .*width"):
        decoded(model_folders["ccdclm"], Search("beam", Options(width=0)))


# score


@every_model
def test_lists_whose_only_candidate_is_the_text_score_as_its_perplexity(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    rng = np.random.default_rng(8)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 7))) for _ in range(13)]
    write("ref.kbest", [f"{t} ||| {text} ||| LM0= 0 ||| 0" for t, text in enumerate(texts)])
    parts = ["\n".join(texts) for texts in by_document(texts).values()]
    Path("ref.txt").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    lists = Lists("ref.kbest", "dev.docs", lms=(("lm", model_folders[name]),))
    score(lists, "out.scored", notices=Notices())
    found = perplexity(model_folders[name], "ref.txt", notices=Notices())
    scored = [Line.of(line) for line in lines_of("out.scored")]
    assert sum(line.dense[1] for line in scored) == pytest.approx(-found.nats, rel=1e-6)
    assert sum(line.dense[2] for line in scored) == found.oov > 0
    assert (found.sentences, found.tokens) == (13, sum(len(text.split()) for text in texts))


@every_model
def test_score_follows_the_first_candidates_or_the_path_decoded_with_weights(
    here: Path, model_folders: Mapping[str, Path], name: str
) -> None:
    lists = Lists("dev.kbest", "dev.docs", lms=(("lm", model_folders[name]),))
    score(lists, "out.scored", notices=Notices())
    reader, lines = Reader(model_folders[name]), lines_of("out.scored")
    for sentences in by_document(by_sentence(lines)).values():
        truth = reader.under(sentences, [0 if candidates else None for candidates in sentences])
        found = [[line.dense[3] for line in candidates] for candidates in sentences]
        for one, two in zip(found, truth, strict=True):
            np.testing.assert_allclose(one, two, atol=2e-4)
    totals = [line.split(" ||| ")[3:] for line in lines]
    assert totals == [line.split(" ||| ")[3:] for line in made_up()]
    decoded(model_folders[name])
    score(lists, "out.scored", weights="w.json", notices=Notices())
    behind = [line.split(" ||| ")[2] for line in lines_of("out.kbest")]
    assert [line.split(" ||| ")[2] for line in lines_of("out.scored")] == behind


def test_weights_must_name_every_feature(here: Path, model_folders: Mapping[str, Path]) -> None:
    weigh({**WEIGHTS, "lm": [1.0, 2.0]})
    with pytest.raises(InputError, match=r"w\.json: expected 1 weights for 'lm'"):
        decoded(model_folders["codclm"])
    weigh({name: WEIGHTS[name] for name in ("LM0", "TM0", "lm")})
    with pytest.raises(InputError, match=r"w\.json: .*none for 'lmoov'"):
        decoded(model_folders["codclm"])
    assert not Path("out.txt").exists()
