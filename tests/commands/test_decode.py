"""`decode` end to end: what it says of the search, what it reads, and what it writes."""

import gzip
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.models import save_models
from support.packages import install
from support.world import DECODE, WORDS, World, without_command

FILES = "--kbest dev.kbest --docs dev.docs --weights w.json --no-cache"
TABLE = """
from decoders.arrays import HistoryTable, Unary
import numpy as np

class Zeros:
    def __init__(self, order):
        self.order = None if order == "all" else int(order)

    def score(self, document):
        sizes = [len(texts) for texts in document.texts if texts]
        starts = [0 if self.order is None else max(0, t - self.order) for t in range(len(sizes))]
        tables = [np.zeros(sizes[s : t + 1]) for t, s in enumerate(starts)]
        tables[0][0] = 0.25
        return HistoryTable(tables, self.order)
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    names = ("rnnlm", "clstm-prevsent", "ccdclm", "dclm-rst")
    folders = {name: tmp_path_factory.mktemp(name) for name in names}
    save_models(folders, WORDS, 4, 6, oov_rate=0.25)
    return folders


@pytest.fixture
def here(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Drawn lists, weights for them, and a scorer of any order that is 0 but for one candidate."""
    install(world.folder, monkeypatch, TABLE, {"scorers": {"own": "Zeros"}})
    world.draw(documents="xxxyyw", gaps=(1,))
    world.weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0.25], "own": 1})
    return world


def own(order: object) -> str:
    return f"decode {FILES} --out - --scorer own=own:{order}"


# What is said of the search
@pytest.mark.parametrize(
    ("order", "options", "said"),
    [
        (0, "", "viterbi, exact for a problem of order 0, O(T K^(n+1)), order n"),
        ("all", "", "beam of width 8, not exact for a problem of unbounded order, O(T B K)"),
        (1, "--search greedy", "greedy, not exact for a problem of order 1, O(T K)"),
        (1, "--search survivors:merge=sample --alpha 1", "survivors, not exact"),
        ("all", "--search exhaustive", "exhaustive, exact for a problem of unbounded order"),
    ],
)
def test_the_search_says_what_is_exact(order: object, options: str, said: str, here: World) -> None:
    assert here.ok(f"{own(order)} {options}").err.startswith(f"search: {said}")


@pytest.mark.parametrize("k", [32, 33])
def test_auto_is_exact_unless_that_takes_four_times_the_passes_of_a_beam_of_eight(
    k: int, world: World, models: Mapping[str, Path]
) -> None:
    lines = [f"{t} ||| {WORDS[n % 12]} x{n} ||| LM0= 0 ||| 0" for t in (0, 1) for n in range(k)]
    world.write("dev.kbest", lines)
    world.weights("w.json", {"LM0": 1, "lm": 1, "lmoov": 0})
    command = "decode --kbest dev.kbest --no-docs one --weights w.json --out - -v"
    run = world.ok(f"{command} --lm lm={models['clstm-prevsent']}")
    assert run.err.startswith(f"search: {'viterbi' if k == 32 else 'beam'}")
    assert ("--search viterbi is exact, in 33 passes over the lists" in run.err) == (k == 33)
    assert "|ctx:" in run.err


@pytest.mark.parametrize(("options", "signed"), [
    ("", "viterbi"),
    ("--alpha 0.5 --seed 7", "viterbi|alpha:0.5|seed:7"),
    ("--search beam:threshold=2 --beam 3", "beam|beam:3|threshold:2.0"),
    ("--search beam --n-best 20", "beam|beam:20"),  # a narrower one lists fewer
    ("--search smc --alpha 0.5", "smc|alpha:0.5|seed:1"),
    ("--search smc:particles=9,ess=0.1,resampling=residual --alpha 0.25 --seed 3",
        "smc|particles:9|resampling:residual|ess:0.1|alpha:0.25|seed:3"),
    ("--search mbr --alpha 1", "mbr|alpha:1.0|seed:1|utility:bleu"),
    ("--search mbr:spread=2.5,utility=chrf,word-reward=-1 --seed 2",
        "mbr|seed:2|utility:chrf|word-reward:-1.0|spread:2.5"),
    ("--search survivors:merge=mean --alpha 2", "survivors|merge:mean|alpha:2.0|seed:1"),
    ("--search sweeps:block=2", "sweeps|beam:8|block:2"),
])  # fmt: skip
def test_a_signature_says_the_options_that_decide(options: str, signed: str, world: World) -> None:
    world.ok(f"{DECODE} --summary s.json {options}")
    signature = world.json("s.json")["signature"]
    result = re.fullmatch(r"rerank\|search:(.*)\|exact:(yes|no)\|k:all\|ctx:0\|w:.*", signature)
    assert result, signature
    assert result[1] == signed


def test_a_signature_names_lists_models_weights_files_and_documents(
    here: World, models: Mapping[str, Path]
) -> None:
    command = f"decode {FILES} --out o --top 2 --lm lm={models['rnnlm']} --scores m=dev.m"
    here.weights("w.json", {"own": 1})
    more = "--pair-scores dev.pairs --scorer own=own:0 --default-weight 0.25"
    here.ok(f"{command} {more} --summary s.json")
    one = here.json("s.json")["signature"]
    digest, parts = (r"=\w{8}", r"\|k:2\|ctx:1\|lm:lm{0}\|scores:m{0},pairs{0}\|scorers:own{0}")
    assert re.search(parts.format(digest) + r"\|w:\w{8}\|dw:0.25\|docs:\w{8}\|v:", one)
    here.write("dev.m", here.text("dev.m").replace("-", "", 1))
    here.ok(f"{command} {more} --summary s.json")
    pairs = zip(one.split("|"), here.json("s.json")["signature"].split("|"), strict=True)
    (changed,) = [[*map(str, pair)] for pair in pairs if pair[0] != pair[1]]
    assert all(part.startswith("scores:m=") for part in changed)


DEFAULTS = [  # option, a search that uses it, and its default where the help does not state a value
    ("--search", "", "auto"), ("--beam", "beam", ""), ("merge", "survivors", ""),
    ("particles", "smc --alpha 1", ""), ("resampling", "smc:ess=1 --alpha 1", ""),
    ("ess", "smc --alpha 1", ""), ("temper", "smc --alpha 1", ""),
    ("samples", "ffbs --alpha 1", ""), ("lag", "smc:particles=5 --alpha 1", "5"),
    ("lag", "ffbs:particles=5 --alpha 1", "2"), ("block", "sweeps --beam 1", ""),
    ("horizon", "sweeps --beam 1", "2"), ("gibbs", "sweeps --beam 1 --alpha 1", ""),
    ("utility", "mbr", ""), ("word-reward", "mbr", ""), ("spread", "mbr", "1.4"),
    ("--seed", "smc:particles=2 --alpha 1", ""), ("--n-best", "beam", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("flag", "search", "value"), DEFAULTS, ids=[f"{f}-{s.split()[:1]}" for f, s, _ in DEFAULTS]
)
def test_the_help_states_the_defaults(flag: str, search: str, value: str, here: World) -> None:
    kind, _, rest = search.partition(" ")
    if shell := flag.startswith("--"):
        text = " ".join(here.ok("decode --help-all").out.split())
    else:
        rows = here.ok("list decoders --format json").json
        settings = {row["name"]: row["settings"] for row in rows}[kind.partition(":")[0]]
        text = f" {flag} {settings[flag]}"
    stated = re.search(rf" {flag} .*?\[default: ([^\];]*)", text)
    assert stated
    assert value in stated[0] + text.partition(stated[0])[2][:40]
    command = f"{own('all')} --summary s --trace t" + (f" --search {search}" if search else "")
    result = []
    given = value or stated[1]
    key = f"--search {kind}{',' if ':' in kind else ':'}{flag}={given} {rest}"
    for more in ("", f"{flag} {given}" if shell else key):
        here.ok(f"{command} {more}")
        result.append((here.json("s")["documents"], without_command(here.content("t"))))
    assert result[0] == result[1]


# The work ahead
def test_a_dry_run_counts_and_writes_nothing(here: World, models: Mapping[str, Path]) -> None:
    here.weights("w.json", {"LM0": 0.5})
    lm = f"--lm one={models['rnnlm']} --pair-scores dev.pairs"
    command, before = f"decode {FILES} --out o --default-weight 0", here.files()
    counts = r"\n3 documents, 6 sentences, \d+ candidates, \d+ words"
    said = here.ok(f"{command} {lm} --dry-run").err
    assert re.search(rf"{counts}; scored by one, pairs\n", said)
    assert re.search(rf"{counts}\n", here.ok(f"{command} --dry-run").err)
    assert here.files() == before
    assert not re.search(counts, here.ok(f"{command} {lm}").err)


def test_the_line_for_people_and_the_summary_say_the_same(here: World) -> None:
    for order, gap, best in (
        ("all", "", "best known"),
        (1, "", "best known"),
        (1, "--gap 2", "optimum"),
    ):
        result = here.ok(f"{own(order)} --search greedy {gap} --summary s.json -v").err
        total = here.json("s.json")
        assert (
            f"3 documents, 6 sentences, {total['changed']} changed "
            f"({total['changed'] / 6:.1%}); model score "
            f"{total['score']:.3f} (first candidates {total['baseline_score']:.3f}, {best} "
            f"{total['best_score']:.3f}, gap {total['gap']:.3f}); search greedy, not exact\n"
            f"{total['signature']}\n"
        ) in result
        assert (total["schema"], total["best"]) == (1, best)


# What is read
def decoded(world: World, command: str, *files: str, **more: bytes) -> list[bytes]:
    world.ok(command, **more)
    return [world.content(name) for name in files]


@pytest.mark.parametrize(("form", "ids"), [("each", "abcdef"), ("one", "aaaaaa")])
def test_no_docs_is_a_file_that_says_the_same(form: str, ids: str, here: World) -> None:
    command = own(2).replace("--out -", "--out o --kbest-out k")
    one = decoded(here, command.replace("--docs dev.docs", f"--no-docs {form}"), "o", "k")
    here.write("dev.docs", [*ids])
    assert decoded(here, command, "o", "k") == one


def test_totals_and_features_that_are_written_have_nine_digits(here: World) -> None:
    here.write("dev.m", ["0.12345678901234"] * len(here.lines("dev.m")))
    here.ok(f"{own(0)} --scores m=dev.m --default-weight 1 --kbest-out k")
    *_, features, total = here.lines("k")[0].split(" ||| ")
    assert " m= 0.123456789 " in features
    assert len(total.strip("-").replace(".", "").lstrip("0")) == 9


def test_compressed_files_and_standard_streams_hold_the_same(here: World) -> None:
    command = f"{own(1)} --scores m=dev.m --pair-scores dev.pairs --default-weight -1"
    text = here.ok(f"{command} --kbest-out k").stdout
    for name in ("dev.kbest", "dev.m", "dev.pairs"):
        here.write(f"{name}.gz", gzip.compress(here.content(name)))
    packed = re.sub(r"(dev\.\w+)", lambda m: m[0] if "docs" in m[0] else f"{m[0]}.gz", command)
    here.ok(packed.replace("--out -", "--out o.gz --kbest-out k.gz"))
    assert gzip.decompress(here.content("o.gz")) == text
    assert gzip.decompress(here.content("k.gz")) == here.content("k")
    piped = packed.replace("dev.kbest.gz", "-")
    assert here.ok(piped, stdin=here.content("dev.kbest.gz")).stdout == text


def test_choices_are_places_in_the_file_where_candidates_are_left_out(here: World) -> None:
    here.weights("w.json", {"LM0": -1, "TM0": [0, 0], "pairs": 2.0})  # not the first ones
    command = f"decode {FILES} --pair-scores dev.pairs --out o --summary s.json --trace t"
    here.ok(f"{command} --top 2 --search ffbs --alpha 1")
    lists = here.lists()
    documents = here.json("s.json")["documents"]
    choices = [choice for document in documents for choice in document["choices"]]
    chosen = ["" if k is None else lists[t][k][0] for t, k in enumerate(choices)]
    assert here.lines("o") == chosen
    traced = [json.loads(line) for line in here.lines("t")]
    assert [line["chosen"] for line in traced] == [k for k in choices if k is not None]
    assert max(len(line["marginals"]) for line in traced) == 2


def test_scores_of_lines_and_pairs_belong_to_their_lines_whatever_the_order(here: World) -> None:
    """Of sentences, and of documents whose lines stand apart."""
    weights = "--default-weight 0.5 --scores m=dev.m --clip-inf 50"
    command = f"decode {FILES} --out o --summary s.json {weights}"
    here.weights("w.json", {"LM0": 0.25})
    lines, numbers = here.lines("dev.kbest"), here.lines("dev.m")
    numbers[3] = "-inf"
    here.write("dev.m", [*numbers, "", " "])
    told = here.ok(command).err
    assert "1 x infinite number, clipped, first at dev.m:4" in told
    result = {one["id"]: (one["score"], one["choices"]) for one in here.json("s.json")["documents"]}
    new = {t: n for n, t in enumerate((0, 3, 5, 1, 4, 2))}  # x y w x y x
    moved = sorted(zip(lines, numbers, strict=True), key=lambda one: new[int(one[0].split()[0])])
    here.write("dev.kbest", [re.sub(r"^\d+", lambda m: str(new[int(m[0])]), line)
                             for line, _ in moved])  # fmt: skip
    here.write("dev.m", [number for _, number in moved])
    here.write("dev.docs", ["x", "y", "w", "x", "y", "x"])
    here.ok(f"{command} --allow-interleaved")
    again = {one["id"]: (one["score"], one["choices"]) for one in here.json("s.json")["documents"]}
    assert again == result


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    text=st.lists(
        st.tuples(
            st.sampled_from(["x", "x ", "y", "", "x\tx"]),
            st.sampled_from(["1", "0", "2", "01", "+1", "", "9"]),
            st.sampled_from(["-", "0", "1", "-1", ""]),
            st.sampled_from(["0", "1", "2", " 0", "0" * 20]),
            st.sampled_from(["1.5", "-1e-3", ".5", "5.", "1_0", "nan", "1e999", "", "1\r", "e5"]),
        ).map("\t".join)
        | st.sampled_from(["", "x\t0\t-\t0\t7", "x\t1\t0\t0\t7"]),
        max_size=2,
    ),
    order=st.permutations(range(6)),
    top=st.sampled_from(["", "--top 1"]),
)
def test_plain_lines_of_pairs_read_together_give_what_they_give_one_by_one(
    text: list[str], order: Sequence[int], top: str, world: World
) -> None:
    """Blanks around a column have no meaning, but lines that have some are read one by one."""
    world.write("k", [f"{t} ||| w{k} ||| A= 0 ||| 0" for t in (0, 1) for k in (0, 1)])
    world.write("d", [*"xx"])
    world.weights("w", {"A": 0, "p": 1})
    rows = [f"x\t0\t-\t{k}\t{k + 0.1}" for k in (0, 1)]
    rows += [f"x\t1\t{j}\t{k}\t{j - 2.5e-1 * k}" for j in (0, 1) for k in (0, 1)]
    result = []
    for blank in ("", " "):
        lines = [line.replace("\t", f"{blank}\t") for line in (rows[n] for n in order)]
        world.write("p", "".join(f"{line}\n" for line in [*lines, *text]))
        command = f"decode --kbest k --docs d --weights w --out - --pair-scores p=p {top} -q"
        run = world.run(f"{command} --summary s.json")
        result.append((run.exit, run.out, run.err.replace(" \t", "\t")))
        if run.exit == 0 and not top:
            assert world.json("s.json")["score"] == 1.1 + 1
    assert result[0] == result[1]


# What is written
def test_scorers_of_weight_0_are_named_and_not_computed(here: World) -> None:
    """No model is in the folder, and the program fails; what is written has none of their scores.

    Lists are written with all features, for tuners.
    """
    here.write("empty/README.md", "no model")
    here.weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0], "rep": 0, "repoov": 0, "qe": 0})
    command = f"decode {FILES} --out o --summary s --trace t"
    without = here.ok(command)
    files = {name: without_command(here.content(name)) for name in ("o", "s", "t")}
    run = here.ok(f"{command} --lm rep=empty --scorer qe=command:false")
    assert {name: without_command(here.content(name)) for name in files} == files
    remark = "`TM0_1`, `rep`, `repoov`, `qe` have weight 0: they are not used"
    assert run.err.splitlines()[-2] == without.err.splitlines()[-2] == remark
    here.write("src", ["a lamp"] * len(here.lines("dev.docs")))  # which that model may have needed
    here.ok(f"{command} --lm rep=empty --source src")
    opened = f"{command} --lm rep=empty --kbest-out k"
    assert "empty/config.json: cannot be read" in here.run(opened).err
    here.weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0], "rep": 0, "repoov": 0.5, "qe": 0})
    assert "empty/config.json: cannot be read" in here.run(f"{command} --lm rep=empty").err


def test_the_total_of_a_list_may_be_a_feature(here: World) -> None:
    lines = [f"{t} ||| {word} ||| LM0= 0 ||| {-n}" for t in (0, 1) for n, word in enumerate("abb")]
    here.write("dev.kbest", lines)
    here.weights("w.json", {"LM0": 0, "total": -1.0})
    command = "decode --kbest dev.kbest --no-docs one --weights w.json --summary s.json"
    result = here.ok(f"{command} --kbest-out k").lines
    assert result == ["b", "b"]
    assert [line.rpartition(" ")[2] for line in here.lines("k")] == ["0", "1", "2"] * 2


def test_candidates_of_equal_scores_are_near_ties(here: World, models: Mapping[str, Path]) -> None:
    here.weights("w.json", {"LM0": 0, "TM0": [0, 0], "lm": 1.0, "lmoov": 0})
    command = f"decode {FILES} --out o --summary s.json --lm lm={models['ccdclm']}"
    here.ok(command)
    one, lines = here.json("s.json"), here.lines("dev.kbest")
    choice = one["documents"][-1]["choices"][-1]
    last = [line for line in lines if line.startswith("5 ")]
    here.write("dev.kbest", [*lines, last[choice]])  # a copy is no other choice
    here.ok(command)
    two = here.json("s.json")
    assert (one["near_ties"], two["near_ties"]) == (0, 0)
    assert two["documents"][-1]["choices"][-1] == choice  # the first of equals
    unknown = (f"5 ||| {9 * x} ||| LM0= 0 TM0= 0 0 ||| 0" for x in ("x ", "y "))
    here.write("dev.kbest", [*lines, *unknown])
    here.weights("w.json", {"LM0": 0, "TM0": [0, 0], "lm": 1.0, "lmoov": 99})
    here.ok(command)
    three = here.json("s.json")
    assert [three["near_ties"], *(d["near_ties"] for d in three["documents"])] == [1, 0, 0, 1]
    assert three["documents"][-1]["choices"][-1] == len(last)


@pytest.mark.parametrize(("bonus", "told"), [(3.0, True), (0.5, False)])
def test_totals_that_do_not_choose_are_counted(bonus: float, told: bool, world: World) -> None:
    """In the first sentence the worse candidate is chosen for what it makes of the second."""
    world.write("k", ["0 ||| a ||| x= 1 ||| 0", "0 ||| b ||| x= 0 ||| 0", "1 ||| c ||| x= 0 ||| 0"])
    pairs = ["all\t0\t-\t0\t0", "all\t0\t-\t1\t0", "all\t1\t0\t0\t0", f"all\t1\t1\t0\t{bonus}"]
    world.write("p", pairs)
    world.weights("w.json", {"x": 1, "pairs": 1})
    command = "decode --kbest k --no-docs one --weights w.json --pair-scores p --kbest-out o"
    run = world.ok(command)
    assert run.lines[0] == ("b" if told else "a")
    message = "--kbest-out: sentences in which another candidate has a larger total than the chosen"
    assert (f"{message} one: 1;" in run.err) == told


# Lexical consistency, and side information of lists with gaps
@pytest.mark.parametrize(
    ("columns", "value"),
    [  # of "bank shore" after "bank bank": source words s, t, or the phrase s t
        (("0-0 1-1", "0-0 1-1"), -1),
        (("0-0", "0-1"), -1),
        (("0-0", "1-1"), 0),
        (("0-0", "0-1 ||| 0-0"), 0),  # the last of several columns
        (("0-0 1-1", "1-0 0-0"), 0),
        (("0-1=0-1", "0-1=0-1"), -1),
        (("0=0 1=1", "0=0"), 0),
        (("0=0 ||| 0-1", "0-0"), 0),  # words where there are both
        (("0-0 0-1", "0-0"), -1),
    ],
)
def test_translations_are_aligned(columns: tuple[str, str], value: float, world: World) -> None:
    texts = ("bank bank", "bank shore")
    rows = zip((0, 1), texts, columns, strict=True)
    world.write("k", [f"{t} ||| {text} ||| x= 0 ||| 0 ||| {own}" for t, text, own in rows])
    world.write("src", ["s t", "s t"])
    world.weights("w.json", {"x": 1, "same": 1})
    command = "decode --kbest k --no-docs one --weights w.json --source src --kbest-out o"
    world.ok(f"{command} --scorer same=consistency")
    assert [float(line.split(" ||| ")[3]) for line in world.lines("o")] == [0, value]
    world.write("ignored", "s t\n")
    world.ok(f"{command} --scorer same=consistency:ignored")
    words = "=" not in columns[0] or "0=0" in columns[0]
    assert world.lines("o")[1].split(" ||| ")[3] == ("0" if words else str(value))


def test_gaps_are_neither_next_nor_read(world: World, models: Mapping[str, Path]) -> None:
    """Scores are those of the document without these sentences."""
    scored: Callable[[], list[str]] = lambda: [line.split(" ||| ")[2] for line in world.lines("o")]  # noqa: E731
    command = f"score --kbest k --no-docs one --lm lm={models['dclm-rst']} --source s --parents p"
    result = []
    for sentences, parents in (([0, 1, 3], [4, 3, 1]), ([0, 1, 2], [3, 0, 1])):
        size = sentences[-1] + 1
        rows = zip(sentences, ("the lamp", "it is lit", "she"), strict=True)
        world.write("k", [f"{t} ||| {text} ||| x= 0 ||| 0" for t, text in rows])
        words, numbers = ["9"] * size, ["0"] * size
        for n, t in enumerate(sentences):
            words[t], numbers[t] = str(n), str(parents[n])
        world.write("s", words)
        world.write("p", numbers)
        world.ok(f"{command} --out o --no-cache")
        result.append(scored())
    assert result[0] == result[1]
    assert len({*result[0]}) == 3
