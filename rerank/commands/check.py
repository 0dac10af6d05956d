"""`rerank check`: what is wrong with the files of a run, and what they hold."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.commands.run import ListFiles, Messages, form_option, print_result
from rerank.corpus.reading import AS_EMPTY, AS_SOURCE
from rerank.errors import InputError, UsageError
from rerank.options import Command, option, part, record
from rerank.values import FILE, FOLDER, TEXT, Pair

if TYPE_CHECKING:
    from rerank.commands.findings import CleanCopies, Findings
    from rerank.commands.lists import KBestFile, Lists
    from rerank.commands.survey import KnownWords, Summary, WeightedTotals
    from rerank.corpus.documents import Documents, Role
    from rerank.files.paths import FilePath


@record
class OtherFiles:
    """Files of a run beside its lists."""

    references: tuple[str, ...] = option(
        "Reference translation, one line per source sentence; repeatable.",
        "--ref",
        type=FILE,
        default=(),
    )
    drop_unreferenced: bool = option(
        "Leave out sentences that a reference in WMT XML, NIST SGML or JSON lines does not have.",
        default=False,
        rare=True,
    )
    source: str | None = option(
        "Source text, one line per source sentence.", type=FILE, default=None
    )
    weights: str | None = option(
        "Weights file, whose names must be those of the list.", type=FILE, default=None
    )
    lm: tuple[tuple[str, Path], ...] = option(
        "Language model, whose unknown words are counted; repeatable.",
        type=Pair("NAME=DIR, for example codclm=models/codclm", FOLDER),
        default=(),
        metavar="NAME=DIR",
    )


@record
class CheckOptions:
    """Options of `rerank check`."""

    lists: ListFiles = part(ListFiles, "Lists and documents")
    others: OtherFiles = part(OtherFiles, "Other files of the run")
    tokenize: str = option(
        "Tokenizer of sacrebleu for BLEU, such as 13a; or moses-en, that of Moses for a language.",
        type=TEXT,
        default="none",
    )
    fix: str | None = option(
        "Write a clean copy of the list to the file OUT, or of all text files into the folder OUT, "
        "if there is one. Only what needs no guess is repaired; the exit code is then 0 if the "
        "copies have no faults, and nothing is written otherwise.",
        type=FILE,
        default=None,
        metavar="OUT",
    )
    form: str = form_option("text", "json")
    messages: Messages = part(Messages, "Messages", without={"verbose"})

    def copies(self, lists: Lists) -> dict[FilePath, str | Path]:
        """Where the clean copy of each file goes; UsageError where it cannot."""
        if self.fix is None:
            return {}
        if lists.systems:
            raise UsageError(
                f"--fix {self.fix}: there is no list of --systems to copy; leave it out"
            )
        if self.fix == "-":
            raise UsageError("--fix -: the report is on standard output; name a file or a folder")
        if not Path(self.fix).is_dir():
            return {lists.kbest: self.fix}
        docs = [] if lists.docs is None else [lists.docs]
        files = [lists.kbest, *docs, *_texts(lists, self.others.references)]
        return {path: Path(self.fix, Path(path).name) for path in files}


def check(options: CheckOptions) -> int:
    """Find faults in the files of a run, and summarise its lists.

    All faults and warnings are listed with file, line and cure, each kind once with its count. The
    exit code is 3 if decode or tune-mert would refuse the files; under --strict also for warnings.

    Example:
      rerank check --kbest dev.nbest.gz --docs dev.docids --ref dev.ref --weights w.json
    """
    from rerank.commands.findings import CheckResult, Findings
    from rerank.commands.lists import made_lists, own_documents, read_targets
    from rerank.commands.survey import KnownWords
    from rerank.files.lines import InputFiles, spool
    from rerank.files.outputs import check_outputs
    from rerank.files.paths import display
    from rerank.formats.translations import UNREFERENCED
    from rerank.scorers.models import LM, check_names, open_model

    others, references = options.others, options.others.references
    lists = options.lists.lists(
        side={} if others.source is None else {"source": others.source},
        drop_unreferenced=others.drop_unreferenced,
    )
    lists.check()
    files = [*lists.files, *references, *([others.weights] if others.weights else [])]
    inputs = InputFiles(files)
    targets = options.copies(lists)
    check_outputs(targets.values(), files)
    result = CheckResult(Findings(), None, options.messages.strict)
    with options.messages.warnings(), ExitStack() as opened:
        check_names({LM: others.lm})
        models = []
        for name, folder in others.lm:
            model = open_model(folder, "cpu")
            models.append(KnownWords(name, model.vocabulary.ids, model.about))
        made, documents = None, None
        with result.findings.counting():
            if lists.systems and references and lists.drop_unreferenced:
                documents, _ = read_targets(lists, references, Findings(), lambda line: None)
                if count := documents.n_left_out:
                    result.findings.add(UNREFERENCED, source=display(references[0]), count=count)
            elif lists.systems:
                documents = own_documents(lists)
            made, _ = made_lists(lists, result.findings, opened, documents)
        if made is not None:
            if not lists.systems:
                made = replace(lists, kbest=opened.enter_context(spool(lists.kbest)).path)
            made = _with_sources(made, opened)
            findings, summary = examine(
                made, references, others.weights, models, documents, tokenize=options.tokenize
            )
            if lists.systems:
                findings = findings.without_repeats(display(made.kbest), result.findings)
            findings.merge(result.findings)
            copies = _clean(lists, made, references, targets) if targets else None
            result = replace(result, findings=findings, summary=summary, copies=copies)
            inputs.check()
    print_result(result, options.form)
    return result.exit_code


COMMAND = Command("check", CheckOptions, check)


def examine(
    lists: Lists,
    references: Sequence[str | Path],
    weights: str | Path | None = None,
    models: Sequence[KnownWords] = (),
    documents: Documents | None = None,
    *,
    tokenize: str = "none",
) -> tuple[Findings, Summary | None]:
    """Findings about files that can be read twice, and a summary of lists that can be read.

    documents: of the run, if they are known already. Memory: a document, the first candidates and
    the references.
    """
    from rerank.commands.findings import Findings
    from rerank.commands.lists import KBestFile
    from rerank.commands.run import progress
    from rerank.commands.survey import ListSurvey, Summary
    from rerank.corpus.grouping import DUPLICATE, EMPTY
    from rerank.files.paths import display

    findings = Findings()
    totals = _weighted_totals(weights, models, findings)
    side = lists.side if lists.missing == AS_SOURCE else {}
    file = KBestFile(lists.kbest, lists, side, unreported=Findings())
    known = documents is not None
    if documents is None:
        documents, known = _documents(file, references, findings)
    documents, targets = _targets(file, references, documents, findings)
    if any(findings.about({display(path) for path in side.values()}).of_level(True)):
        without_sources = replace(lists, missing=AS_EMPTY)
        file = KBestFile(lists.kbest, without_sources, unreported=Findings())
    survey, form = ListSurvey(file.name, targets, models, findings, tokenize=tokenize), ""
    with findings.counting():
        form = file.format.name
        pieces = file.in_pieces(documents)
        found = file.read(pieces, findings)
        for _, kbest in progress(found, label="documents", unit="documents", total=len(pieces)):
            survey.add(kbest)
            if totals is not None:
                totals.add(kbest)
    if totals is not None:
        totals.report()
    if not survey.k.any():
        return findings, None
    return findings, Summary(
        name=file.name,
        form=form,
        documents=len(documents) if known else None,
        lengths=tuple(stop - start for start, stop in pairwise(documents.starts)),
        k=survey.k,
        features=survey.features(),
        sparse=len(survey.sparse),
        duplicates=findings.count_of(DUPLICATE),
        empty=findings.count_of(EMPTY),
        unknown=survey.unknown(),
        bleu=survey.bleu(),
    )


def _with_sources(lists: Lists, copies: ExitStack) -> Lists:
    """The lists with a file of sources, if these are to be candidates (`--missing source`)."""
    from rerank.commands.lists import MISSING_SOURCE, with_own_sources
    from rerank.formats.translations import check_files

    if lists.missing != AS_SOURCE:
        return lists
    try:
        found = with_own_sources(lists, copies)
    except InputError:  # reported where the list is read
        return replace(lists, missing=AS_EMPTY)
    check_files(MISSING_SOURCE, found.side)
    return found


def _weighted_totals(
    weights: str | Path | None, models: Sequence[KnownWords], findings: Findings
) -> WeightedTotals | None:
    """The check of weights that can be read; None without any."""
    from rerank.commands.survey import WeightedTotals
    from rerank.corpus.columns import Label
    from rerank.files.paths import display
    from rerank.formats.weight_files import read_weights

    if weights is None:
        return None
    with findings.counting():
        found = read_weights(weights, findings)
        added = [Label(name, 1) for model in models for name in (model.name, f"{model.name}oov")]
        return WeightedTotals(found, display(weights), added, findings)
    return None


# Which line belongs to which sentence


def _documents(
    file: KBestFile, references: Sequence[str | Path], findings: Findings
) -> tuple[Documents, bool]:
    """The documents, and whether a file or an option names them; otherwise one per sentence.

    A list that cannot be read is reported where it is read, and likewise a reference.
    """
    from rerank.corpus.documents import Documents
    from rerank.formats.translations import SOURCE, check_source_order, documents_of_reference

    lists, docs = file.lists, [] if file.lists.docs is None else [file.lists.docs]
    own = bool(docs)
    if not docs and lists.no_docs is None:
        with suppress(InputError):
            own = file.annotations[0] is not None
    if own:
        with findings.counting():
            return file.documents(findings), True
    elif lists.no_docs is None and references:
        stated = None
        with suppress(InputError):
            stated = documents_of_reference(references, findings.unreported())
        if stated is not None:
            with findings.counting():
                check_source_order(lists.side.get(SOURCE), references[0], stated, findings)
            return stated, True
    n_lines = 0
    with suppress(InputError):
        n_lines = file.survey.candidates
        with findings.counting():
            n_lines = file.lines_by_id()
    if texts := [*docs, *_texts(lists, references)]:
        n_lines = _count_lines(texts[0], n_lines, _role(texts[0], references))
    if lists.no_docs == "one":
        return Documents.one(n_lines), True
    return Documents.each(n_lines), lists.no_docs is not None


def _texts(lists: Lists, references: Sequence[str | Path]) -> list[FilePath]:
    """Files with a line for each source line: the source and the references."""
    return [*([lists.side["source"]] if "source" in lists.side else []), *references]


def _role(path: FilePath, references: Sequence[str | Path]) -> Role:
    """Which text of a file with several is meant."""
    return "reference" if path in references else "source"


def _count_lines(path: FilePath, n_list: int, role: Role) -> int:
    """Number of source lines by a text that has a line for each, without blank lines at its end.

    n_list: number by the ids of the list, up to which blank lines at the end count.
    """
    from rerank.commands.findings import Findings
    from rerank.formats.translations import read_texts_of

    try:
        (text, *_) = read_texts_of(path, None, Findings(), role=role)
    except InputError:  # reported where the text is read
        return n_list
    last = max((n for n, line in enumerate(text.lines, 1) if line and line.strip()), default=0)
    return max(last, min(n_list, len(text.lines)))


def _targets(
    file: KBestFile,
    references: Sequence[str | Path],
    documents: Documents,
    findings: Findings,
) -> tuple[Documents, list[list[bytes]]]:
    """The documents, and references [sentence][file] of the files that have all their lines.

    With `Lists.drop_unreferenced` the documents are those of the sentences that have references.
    """
    from rerank.commands.findings import Findings
    from rerank.corpus.spelling import nfc_lines
    from rerank.files.paths import display
    from rerank.formats.translations import matched, read_reference_texts, read_texts_of

    lists = file.lists
    model = file.name if lists.docs is None else display(lists.docs)
    sound = []
    for path in _texts(lists, references):
        found, role = Findings(), _role(path, references)
        with found.counting():
            read_texts_of(path, documents, found, model=model, role=role)
            if role == "reference":
                sound.append(path)  # read once more, together with the others
                continue
        findings.merge(found)
    with findings.counting():  # of a text that lacks a sentence
        texts = read_reference_texts(sound, documents, findings, model=model) if sound else []
        documents, targets = matched(texts, documents, findings, drop=lists.drop_unreferenced)
        return documents, nfc_lines(targets) if lists.in_nfc else targets
    return documents, []


def _clean(
    lists: Lists,
    read: Lists,
    references: Sequence[str | Path],
    targets: Mapping[FilePath, str | Path],
) -> CleanCopies:
    """Write clean copies to the targets, unless one of them would have faults.

    read: the lists as they can be read twice.
    """
    from rerank.commands.findings import CleanCopies, Findings, cleaned_list, cleaned_text, in_nfc
    from rerank.commands.lists import KBestFile
    from rerank.corpus.documents import DocumentFile
    from rerank.files.outputs import atomic_all
    from rerank.files.paths import display

    file = KBestFile(read.kbest, read, unreported=Findings())
    documents, _ = _documents(file, references, Findings())
    repairs: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="rerank-") as folder:
        copies: dict[FilePath, Path] = {}
        try:
            for path, target in targets.items():
                copies[path] = Path(folder, f"<clean copy of {Path(path).name}>")
                done = repairs[display(target)] = Counter()
                if path == lists.kbest:
                    cleaned = cleaned_list(read.kbest, read, done)
                else:
                    cleaned = cleaned_text(path, documents.n_sentences, done)
                if read.in_nfc and path != lists.docs:
                    cleaned = in_nfc(cleaned, done)
                with copies[path].open("wb") as copy:
                    copy.writelines(line + b"\n" for line in cleaned)
        except InputError as fault:
            remaining = Findings()
            remaining.refuse(fault)
            return CleanCopies({}, remaining)
        docs = None if read.docs is None else copies.get(read.docs, read.docs)
        if isinstance(read.docs, DocumentFile) and docs is not None:
            docs = replace(read.docs, path=docs)
        side = {kind: copies.get(path, path) for kind, path in read.side.items()}
        again = replace(read, kbest=copies[lists.kbest], docs=docs, side=side)
        findings, _ = examine(again, [copies.get(path, path) for path in references])
        findings = findings.about(set(map(display, copies.values())))
        if any(findings.of_level(True)):
            return CleanCopies({}, findings)
        with atomic_all(list(targets.values())) as files:
            for path, out in zip(targets, files, strict=True):
                with copies[path].open("rb") as copy:
                    shutil.copyfileobj(copy, out)
    return CleanCopies(repairs, findings)
