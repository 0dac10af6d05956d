"""`rerank candidates`: translations of sources by a sequence-to-sequence model, as k-best lists."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.corpus.reading import DocumentOptions
from rerank.errors import InputError, StoppedEarly, UsageError
from rerank.files.paths import display
from rerank.files.terminal import progress
from rerank.options import Command, option, part, record
from rerank.runs.options import Machine, Messages
from rerank.scorers.hugging_face import SEQ2SEQ, TranslationSettings
from rerank.scorers.model_options import LanguageModelOption
from rerank.values import FILE, FOLDER, SEED, Real, Whole

if TYPE_CHECKING:
    from lm.ctranslate2 import ConvertedEngine
    from lm.seq2seq import Generated, GenerationSettings, TranslationEngine
    from rerank.corpus.documents import Documents
    from rerank.notices import Notices

CONVERTED = "ct2:"  # before a folder of CTranslate2
_DRAWN = {"sample": "tokens are drawn under --sample alone; add it"}
_GROUPS = {"beam_groups": "it is of --beam-groups alone; add it"}


@record
class CandidateSearch:
    """How candidates are found."""

    n_best: int = option("Candidates of a sentence.", type=Whole(1, 1000), default=50)
    beam: int | None = option(
        "Width of the beam [default: that of --n-best].", type=Whole(1, 1000), default=None
    )
    beam_groups: int | None = option(
        "Groups of the beam, which avoid each other's tokens: diverse beam search.",
        type=Whole(2, 1000),
        default=None,
        rare=True,
    )
    diversity_penalty: float = option(
        "Nats that a token loses for each beam of an earlier group that has it at its place.",
        type=Real(0, 1000),
        default=0.5,
        needs=_GROUPS,
        rare=True,
    )
    sample: bool = option("Draw candidates from the model, in place of beam search.", default=False)
    temperature: float = option(
        "Tokens are drawn with probabilities proportional to p^(1/TEMPERATURE).",
        type=Real(0.01, 100),
        default=1.0,
        needs=_DRAWN,
    )
    epsilon: float = option(
        "Tokens of a smaller probability are not drawn, for example 0.02.",
        type=Real(0, 1, below=True),
        default=0.0,
        needs=_DRAWN,
        rare=True,
    )
    longest: int = option("Most tokens of a candidate.", type=Whole(1, 10_000), default=200)
    batch: int = option("Sentences at once.", type=Whole(1, 1000), default=8)
    seed: int = option("Random seed.", type=SEED, default=1)


@record
class CandidatesOptions:
    """Options of `rerank candidates`."""

    model: Path = option(
        "Sequence-to-sequence model of Hugging Face (extra hf), or ct2:DIR of CTranslate2 "
        "(extra ct2).\n\n"
        "ct2:DIR is converted for CTranslate2 and has the files of its tokenizer. Behind the "
        "folder as of --lm of rerank score: src, tgt, prefix, long, detokenize-source, and "
        "of seq2seq:DIR adapter.",
        type=FOLDER,
        metavar="seq2seq:DIR[,KEY=VALUE...]",
    )
    source: str = option("Source sentences, one per line.", type=FILE)
    documents: DocumentOptions = part(DocumentOptions, without={"allow_interleaved"})
    out: str = option("Output: JSON lines, a sentence each.", type=FILE, metavar="FILE.jsonl")
    resume: bool = option("Go on with an interrupted run of --out.", default=False)
    finding: CandidateSearch = part(CandidateSearch, "Search")
    machine: Machine = part(Machine, "Machine")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


def candidates(options: CandidatesOptions) -> None:
    """Translate source sentences into k-best lists, by beam search or by draws from a model.

    A line of JSON has the document, the source and its candidates, with feature logprob: log p of
    the text as the tokenizer reads it, which rerank score gives, too. The score of a candidate is
    that of the beam, or logprob for draws and groups. Equal texts are one candidate; of draws it
    has feature votes, how often it was drawn. Commands read the file with --kbest, and need no
    --docs beside it. A run that is stopped keeps its sentences in FILE.jsonl.part, from which
    --resume goes on.

    Lists that differ more are those of diverse beam search, --beam-groups (Vijayakumar et al.
    2018), of draws, --sample with a --temperature above 1, or of several models: --kbest, which
    is repeatable, merges them.

    Example:
      rerank candidates --model seq2seq:opus --source dev.zh --docs dev.ids --out dev.jsonl
    """
    from rerank.files.lines import InputFiles
    from rerank.files.outputs import atomic, check_outputs
    from rerank.files.terminal import Interrupts

    docs, kept = options.documents.docs, Path(f"{options.out}.part")
    files = [options.source, *([docs] if docs else [])]
    model, converted = _model(options), str(options.model).startswith(CONVERTED)
    check_outputs((options.out, kept), (model.folder, *files))
    options.messages.announce_threads(options.machine.threads)
    with options.messages.warnings() as notices:
        inputs = InputFiles(files)
        documents, sources = _sources(options, notices)
        names = [name for name, own in documents.ranges() for _ in own]
        opened = _converted if converted else _of_transformers
        engine, given = opened(model, options)
        translator = Translator(engine, given, _way(options.finding))
        texts = translator.read(sources, options.source, documents, notices)
        done = _kept(kept, translator.header(sources, options.finding.seed), options)
        batches = _batches(len(texts), options.finding.batch, done)
        shown = progress(batches, label="translating", unit="batches", total=len(batches))
        with Interrupts() as interrupts, kept.open("ab") as file:
            for begin, end in shown:
                found = translator.translate(texts[begin:end], begin, options.finding.seed)
                file.writelines(_lines(found, names[begin:end], sources[begin:end]))
                file.flush()
                if interrupts.asked:
                    raise StoppedEarly(
                        f"stopped, {end:,} sentences are in {display(kept)}; to continue, run the "
                        "same command with --resume"
                    )
        inputs.check()
        with atomic(options.out) as out, kept.open("rb") as file:
            next(file)  # the header
            out.writelines(file)
        kept.unlink()
        if translator.cut:
            longest, place = options.finding.longest, display(options.out)
            notices.add("cut-candidate", source=place, count=translator.cut, longest=longest)
        if translator.too_long:
            notices.add("long-candidate", source=display(options.out), count=translator.too_long)
    options.messages.announce(f"{len(sources):,} lists written to {display(options.out)}")


COMMAND = Command("candidates", CandidatesOptions, candidates)


@dataclass(frozen=True, slots=True)
class TranslatedText:
    """A text, its log-probability, its total, and how often it was drawn, None if it was not."""

    text: str
    logprob: float
    score: float
    votes: int | None = None

    def as_json(self) -> dict[str, object]:
        """The candidate as an object of a list in JSON lines."""
        features = {"logprob": self.logprob, "votes": self.votes}
        if self.votes is None:
            del features["votes"]
        return {"text": self.text, "score": self.score, "features": features}


@dataclass(slots=True, eq=False)
class Translator:
    """A model that translates, and how.

    cut: number of candidates that did not end; too_long: of those whose texts, as the tokenizer
    reads them, have more tokens than the model has positions.
    """

    engine: TranslationEngine | ConvertedEngine
    given: TranslationSettings
    way: GenerationSettings
    cut: int = 0
    too_long: int = 0

    def read(
        self, sources: Sequence[bytes], name: str, documents: Documents, notices: Notices
    ) -> list[tuple[int, ...]]:
        """What the model reads of each source; InputError for one that is too long.

        Warnings: of sources that are blank, of a script that the model does not know, and of those
        that are cut at the model's positions.
        """
        from rerank.corpus.spelling import detokenised
        from rerank.scorers.translation_model import unknown_letters

        model, prefix = self.engine.model, self.given.prefix
        language = self.given.detokenize_source
        lines = detokenised(sources, language) if language else sources
        before = f"{prefix.rstrip()} " if prefix else ""
        tokens = model.encode([before + line.decode() for line in lines])
        most = model.positions - len(model.source)
        for t, one in enumerate(tokens):
            if len(one) > most and self.given.long != "cut":
                raise InputError(
                    f"expected a source of at most {most:,} tokens, for which the model has "
                    f"positions, found one of {len(one):,}; add ,long=cut behind the folder of "
                    "--model, which cuts it there, or part it",
                    source=name,
                    line=documents.line(t) + 1,
                )
        place, line = display(name), documents.line
        if blank := [t for t, own in enumerate(sources) if not own.strip()]:
            at = line(blank[0]) + 1
            notices.add("blank-source-line", source=place, line=at, count=len(blank))
        letters = Counter(chain.from_iterable(line.decode() for line in lines))
        unknown_letters(model, letters, target=False).warn_of_language(
            "the model",
            notices,
            unit="source letter",
            source=place,
            cure="give the model of this pair of languages",
        )
        if long := [t for t, one in enumerate(tokens) if len(one) > most]:
            notices.add(
                "long-text",
                source=place,
                line=line(long[0]) + 1,
                count=len(long),
                asked=True,
                positions=f"{model.positions:,}",
                name="the model",
                shortened="cut",
            )
        return [model.source.around([one[:most]]) for one in tokens]

    @property
    def drawn(self) -> bool:
        """Whether candidates are draws, in place of those of a beam."""
        return self.way.temperature is not None

    @property
    def alone(self) -> bool:
        """Whether a source is translated on its own, so that a list does not depend on others."""
        return self.drawn or self.way.groups > 1

    def header(self, sources: Sequence[bytes], seed: int) -> bytes:
        """A line that is equal for runs with equal results."""
        content = hashlib.sha256(b"\n".join(sources)).hexdigest()
        model = self.engine.model.digest
        own = {"model": model, **asdict(self.given), **asdict(self.way), "sources": content}
        del own["adapter"]  # which the model's digest has
        return json.dumps({**own, "seed": seed if self.drawn else None}).encode() + b"\n"

    def translate(
        self, texts: Sequence[tuple[int, ...]], begin: int, seed: int
    ) -> list[list[TranslatedText]]:
        """Candidates of each source: in the order of the beam; draws and groups by probability.

        begin: number of the first source. Draws of a source depend on its number and the seed, not
        on what else is translated.
        """
        import numpy as np

        decode = self.engine.model.tokenizer.decode
        generated: list[list[Generated]] = []
        for n, sources in enumerate([[one] for one in texts] if self.alone else [texts], begin):
            own = int(np.random.SeedSequence((seed, n)).generate_state(1)[0])
            generated += self.engine.generated(sources, self.way, own)
        self.cut += sum(not candidate.ended for own in generated for candidate in own)
        written = [
            [" ".join(decode(c.tokens, skip_special_tokens=True).split()) for c in own]
            for own in generated
        ]
        log_probs = self._log_probs(texts, written)
        return [self._list(*own) for own in zip(generated, written, log_probs, strict=True)]

    def _log_probs(
        self, sources: Sequence[tuple[int, ...]], written: Sequence[Sequence[str]]
    ) -> list[dict[str, float]]:
        """Log p of the distinct texts of each source, without those that are too long.

        Their tokens are the tokenizer's, not those that were generated: a text has many
        segmentations, and some tokens are not written.
        """
        from lm.seq2seq import SourceAndTarget

        model = self.engine.model
        most = model.positions - len(model.target)
        distinct = [[*dict.fromkeys(own)] for own in written]
        tokens = iter(model.encode([*chain.from_iterable(distinct)], target=True))
        read = [{text: next(tokens) for text in own} for own in distinct]
        fitting = [{text: ids for text, ids in own.items() if len(ids) <= most} for own in read]
        self.too_long += sum(map(len, read)) - sum(map(len, fitting))
        scores = self.engine.scores(
            [
                [SourceAndTarget(source, model.target.around([ids])) for ids in own.values()]
                for source, own in zip(sources, fitting, strict=True)
            ]
        )
        return [
            dict(zip(own, log_probs.tolist(), strict=True))
            for own, log_probs in zip(fitting, scores, strict=True)
        ]

    def _list(
        self,
        generated: Sequence[Generated],
        written: Sequence[str],
        log_probs: Mapping[str, float],
    ) -> list[TranslatedText]:
        """Candidates with distinct texts, best first; log_probs: of those that are kept."""
        votes = Counter(written)
        found = [
            TranslatedText(
                text,
                log_prob,
                log_prob if self.alone else generated[written.index(text)].score,
                votes[text] if self.drawn else None,
            )
            for text, log_prob in log_probs.items()
        ]
        best = sorted(found, key=lambda candidate: -candidate.score) if self.alone else found
        return best if self.drawn else best[: self.way.number]


# Models


def _way(finding: CandidateSearch) -> GenerationSettings:
    """How candidates are found."""
    from lm.seq2seq import GenerationSettings

    return GenerationSettings(
        finding.n_best,
        finding.beam or finding.n_best,
        finding.temperature if finding.sample else None,
        finding.epsilon,
        finding.longest,
        finding.beam_groups or 1,
        finding.diversity_penalty if finding.beam_groups else 0.0,
    )


def _of_transformers(
    model: LanguageModelOption, options: CandidatesOptions
) -> tuple[TranslationEngine, TranslationSettings]:
    """The model of a folder of Hugging Face; InputError for an invalid one."""
    from rerank.scorers.models import open_models
    from rerank.scorers.translation_model import TranslationScorer

    machine = options.machine
    (scorer,) = open_models(
        [model],
        None,
        device=machine.device,
        threads=machine.threads,
        dtype="float32",
        deterministic=False,
    )
    if not isinstance(scorer, TranslationScorer):
        raise TypeError(type(scorer))
    return scorer.engine, scorer.given


def _converted(
    model: LanguageModelOption, options: CandidatesOptions
) -> tuple[ConvertedEngine, TranslationSettings]:
    """The model of a folder of CTranslate2; InputError for an invalid one."""
    from lm.causal_folder import CausalFolderError
    from lm.ctranslate2 import open_converted_model
    from rerank.scorers.models import choose_device

    given, machine = model.window, options.machine
    if not isinstance(given, TranslationSettings):
        raise TypeError(type(given))
    device = choose_device(machine.device, machine.threads)
    try:
        engine = open_converted_model(model.folder, given.src, given.tgt, device, machine.threads)
    except CausalFolderError as fault:
        raise InputError(str(fault)) from None
    return engine, given


# Files


def _model(options: CandidatesOptions) -> LanguageModelOption:
    """The model of --model; UsageError for another kind, or for keys of scores."""
    text, finding = str(options.model), options.finding
    converted = text.startswith(CONVERTED)
    if not text.startswith(SEQ2SEQ) and not converted:
        raise UsageError(
            f"--model {text}: expected seq2seq:DIR, of Hugging Face, or ct2:DIR, of CTranslate2"
        )
    if converted and finding.epsilon:
        raise UsageError(
            f"--epsilon {finding.epsilon:g}: CTranslate2 does not leave out tokens so; leave it out"
        )
    groups, beam = finding.beam_groups, finding.beam or finding.n_best
    if groups and (converted or finding.sample):
        other = "--sample" if finding.sample else "a model of CTranslate2"
        raise UsageError(f"--beam-groups {groups}: not for {other}; leave it out")
    if groups and beam % groups:
        raise UsageError(
            f"--beam-groups {groups}: expected a divisor of the width of the beam, {beam}; give "
            "another --beam"
        )
    if not finding.sample and finding.beam is not None and finding.beam < finding.n_best:
        raise UsageError(
            f"--beam {finding.beam}: expected --n-best {finding.n_best} or more; give a wider one"
        )
    found = LanguageModelOption.of("model", f"{SEQ2SEQ}{text.partition(':')[2]}")
    given = found.window
    own = ["src", "tgt", "prefix", "long", "detokenize_source", *([] if converted else ["adapter"])]
    if (
        not isinstance(given, TranslationSettings)
        or found.pmi
        or any(
            value not in (None, False, 0) for key, value in asdict(given).items() if key not in own
        )
    ):
        raise UsageError(
            f"--model {text}: expected {', '.join(own).replace('_', '-')} behind the folder, found "
            "another key; leave it out"
        )
    return found


def _sources(options: CandidatesOptions, notices: Notices) -> tuple[Documents, list[bytes]]:
    """The documents and their source sentences."""
    from rerank.files.lines import count_lines
    from rerank.formats.document_files import chosen_documents
    from rerank.formats.translations import read_translation

    docs, no_docs = options.documents.file, options.documents.no_docs
    documents = chosen_documents(docs, no_docs, lambda: count_lines(options.source), notices)
    lines = read_translation(
        options.source, documents, notices, model=display(docs or options.source), role="source"
    )
    return documents, lines


def _kept(path: Path, header: bytes, options: CandidatesOptions) -> int:
    """Number of sentences that an interrupted run has kept, in whole batches.

    UsageError if it is not to be resumed, or if it was another run.
    """
    content = path.read_bytes() if path.exists() else b""
    first, mark, rest = content.partition(b"\n")
    if not rest:
        path.write_bytes(header)
        return 0
    if not options.resume:
        raise UsageError(
            f"{display(path)}: sentences of an interrupted run; add --resume to go on with it, or "
            "remove the file"
        )
    if first + mark != header:
        raise UsageError(
            f"{display(path)}: sentences of a run with another model, source or options; remove "
            "the file, or name another --out"
        )
    lines = rest.splitlines(keepends=True)
    whole = len(lines) - (bool(lines) and not lines[-1].endswith(b"\n"))
    whole -= whole % options.finding.batch
    os.truncate(path, len(header) + sum(map(len, lines[:whole])))
    if whole:
        options.messages.announce(f"{whole:,} sentences are kept in {display(path)}")
    return whole


def _batches(n: int, size: int, done: int) -> list[tuple[int, int]]:
    """First and last sentence of each batch that is left."""
    return [(begin, min(begin + size, n)) for begin in range(done, n, size)]


def _lines(
    lists: Sequence[Sequence[TranslatedText]], names: Sequence[str], sources: Sequence[bytes]
) -> Iterator[bytes]:
    """A line of JSON for each list, with its document and its source."""
    for own, name, source in zip(lists, names, sources, strict=True):
        found: dict[str, object] = {"document": name, "source": source.decode()}
        found["candidates"] = [one.as_json() for one in own]
        yield json.dumps(found, ensure_ascii=False).encode() + b"\n"
