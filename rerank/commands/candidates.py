"""`rerank candidates`: translations of sources by a sequence-to-sequence model, as k-best lists."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.corpus.reading import DocumentOptions
from rerank.errors import StoppedEarly, UsageError
from rerank.files.lines import count_lines
from rerank.files.outputs import atomic, check_outputs
from rerank.files.paths import display
from rerank.files.terminal import Interrupts, progress
from rerank.formats.document_files import chosen_documents
from rerank.notices import Notices
from rerank.options import Command, flag, option, optional, part, record
from rerank.runs.options import Machine, Messages, printed
from rerank.scorers.model_options import SEQ2SEQ, LanguageModelOption, TranslationSettings
from rerank.values import FILE, FOLDER, SEED, Real, Whole

if TYPE_CHECKING:
    from lm.seq2seq import GenerationSettings

CONVERTED = "ct2:"  # before a folder of CTranslate2
_KEYS = ("src", "tgt", "prefix", "long", "detokenize_source", "adapter")  # of --model
_DRAWN = {"sample": "tokens are drawn under --sample alone; add it"}
_GROUPS = {"beam_groups": "it is of --beam-groups alone; add it"}


@record
class CandidateSearch:
    """How candidates are found."""

    n_best: int = option("Candidates of a sentence.", type=Whole(1, 1000), default=50)
    beam: int | None = optional(
        "Width of the beam [default: that of --n-best].", type=Whole(1, 1000)
    )
    beam_groups: int | None = optional(
        "Groups of the beam, which avoid each other's tokens: diverse beam search.",
        type=Whole(2, 1000),
        rare=True,
    )
    diversity_penalty: float = option(
        "Nats that a token loses for each beam of an earlier group that has it at its place.",
        type=Real(0, 1000),
        default=0.5,
        needs=_GROUPS,
        rare=True,
    )
    sample: bool = flag("Draw candidates from the model, in place of beam search.")
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

    def check(self) -> None:
        """UsageError for a beam that does not fit the number of candidates or of groups."""
        groups, beam = self.beam_groups, self.beam or self.n_best
        if groups and self.sample:
            raise UsageError(f"--beam-groups {groups}: not for --sample; leave it out")
        if groups and beam % groups:
            raise UsageError(
                f"--beam-groups {groups}: expected a divisor of the width of the beam, {beam}; "
                "give another --beam"
            )
        if not self.sample and beam < self.n_best:
            raise UsageError(
                f"--beam {beam}: expected --n-best {self.n_best} or more; give a wider one"
            )

    @property
    def settings(self) -> GenerationSettings:
        """How candidates are found."""
        from lm.seq2seq import GenerationSettings

        return GenerationSettings(
            self.n_best,
            self.beam or self.n_best,
            self.temperature if self.sample else None,
            self.epsilon,
            self.longest,
            self.beam_groups or 1,
            self.diversity_penalty if self.beam_groups else 0.0,
        )


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
    resume: bool = flag("Go on with an interrupted run of --out.")
    finding: CandidateSearch = part(CandidateSearch, "Search")
    machine: Machine = part(Machine, "Machine")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def candidates(options: CandidatesOptions, notices: Notices) -> str:
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
    from rerank.formats.translations import read_translation
    from rerank.scorers.models import open_engine
    from rerank.scorers.translation_model import Translator

    file, docs, search = options.documents.file, options.documents.docs, options.finding
    kept, name = Path(f"{options.out}.part"), options.source
    model, converted = _model(options), str(options.model).startswith(CONVERTED)
    inputs = check_outputs((options.out, kept), (name, docs), [model.folder])
    no_docs = options.documents.no_docs
    documents = chosen_documents(file, no_docs, lambda: count_lines(name), notices)
    sources = read_translation(name, documents, notices, model=display(file or name), role="source")
    ids = [document for document, lines in documents.ranges() for _ in lines]
    machine = options.machine
    engine, settings = open_engine(model, machine.device, machine.threads, converted=converted)
    translator = Translator(engine, settings, search.settings, search.seed)
    texts = translator.read(sources, name, documents, notices)
    done = _kept(kept, translator.header(sources), options)
    batches = [slice(n, n + search.batch) for n in range(done, len(texts), search.batch)]
    shown = progress(batches, label="translating", unit="batches", total=len(batches))
    with Interrupts() as interrupts, kept.open("ab") as part_file:
        for batch in shown:
            lists = translator.translate(texts[batch], batch.start)
            for candidates, name, source in zip(lists, ids[batch], sources[batch], strict=True):
                line = {"document": name, "source": source.decode(), "candidates": candidates}
                part_file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            part_file.flush()
            if interrupts.asked:
                end = min(batch.stop, len(texts))
                raise StoppedEarly(
                    f"stopped, {end:,} sentences are in {display(kept)}; to continue, run the "
                    "same command with --resume"
                )
    inputs.check()
    with atomic(options.out) as out, kept.open("rb") as part_file:
        next(part_file)  # the header
        out.writelines(part_file)
    kept.unlink()
    place = display(options.out)
    if translator.cut:
        notices.add("cut-candidate", source=place, count=translator.cut, longest=search.longest)
    if translator.too_long:
        notices.add("long-candidate", source=place, count=translator.too_long)
    return f"{len(sources):,} lists written to {display(options.out)}"


COMMAND = Command("candidates", CandidatesOptions, candidates)


def _model(options: CandidatesOptions) -> LanguageModelOption:
    """The model of --model; UsageError for another kind, or for keys of scores."""
    text, search = str(options.model), options.finding
    converted = text.startswith(CONVERTED)
    if not text.startswith(SEQ2SEQ) and not converted:
        raise UsageError(
            f"--model {text}: expected seq2seq:DIR, of Hugging Face, or ct2:DIR, of CTranslate2"
        )
    if converted and search.epsilon:
        raise UsageError(
            f"--epsilon {search.epsilon:g}: CTranslate2 does not leave out tokens so; leave it out"
        )
    if converted and search.beam_groups:
        raise UsageError(
            f"--beam-groups {search.beam_groups}: not for a model of CTranslate2; leave it out"
        )
    if converted and options.machine.device == "mps":
        raise UsageError("--device mps: not for a model of CTranslate2; use --device cpu")
    model = LanguageModelOption.of("model", f"{SEQ2SEQ}{text.partition(':')[2]}")
    settings, keys = model.window, _KEYS[:-1] if converted else _KEYS
    if not isinstance(settings, TranslationSettings) or any(
        value for key, value in {**asdict(settings), "pmi": model.pmi}.items() if key not in keys
    ):
        raise UsageError(
            f"--model {text}: expected {', '.join(keys).replace('_', '-')} behind the folder, "
            "found another key; leave it out"
        )
    return model


def _kept(path: Path, header: bytes, options: CandidatesOptions) -> int:
    """Number of sentences that an interrupted run has kept; UsageError if it cannot go on."""
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
