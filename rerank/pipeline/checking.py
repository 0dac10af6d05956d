"""`rerank check`: what is wrong with the files of a run, and what they hold."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from rerank.check.cleaning import cleaned_list, cleaned_text, in_nfc
from rerank.check.findings import Findings
from rerank.check.result import CheckResult, CleanCopies
from rerank.check.summary import Summary
from rerank.check.survey import KnownWords, ListSurvey, WeightedTotals
from rerank.corpus.columns import Label
from rerank.corpus.documents import Documents, Role
from rerank.corpus.grouping import DUPLICATE, EMPTY
from rerank.corpus.reading import AS_EMPTY, AS_SOURCE
from rerank.corpus.spelling import nfc_lines
from rerank.errors import InputError, UsageError
from rerank.files.lines import InputFiles, spool
from rerank.files.outputs import atomic_all, check_outputs
from rerank.files.paths import FilePath, display
from rerank.formats.documents.table import DocumentFile
from rerank.formats.side_information import NO_FILES, SOURCE, check_files
from rerank.formats.translations import UNREFERENCED, matched, read_reference_texts, read_texts_of
from rerank.formats.weights import read_weights
from rerank.notices import Notices, PythonWarnings
from rerank.pipeline.kbest_file import KBestFile
from rerank.pipeline.lists import MISSING_SOURCE, Lists, made_lists, own_documents, with_own_sources
from rerank.pipeline.models import check_names
from rerank.pipeline.progress import progress
from rerank.pipeline.references import check_source_order, documents_of_reference, read_targets


def check(
    lists: Lists,
    references: Sequence[str | Path] = (),
    *,
    weights: str | Path | None = None,
    tokenize: str = "none",
    fix: str | Path | None = None,
    notices: Notices | None = None,
) -> CheckResult:
    """Find what other commands refuse or warn of in the files of a run, and summarise its lists.

    tokenize: for BLEU against the references; fix: file for a clean copy of the list, or an
    existing folder for copies of all text files, which are not written if they would have faults;
    notices: only whether they are strict counts, since all findings are in the result.
    UsageError for missing files. Memory: a document, the first candidates and the references.
    """
    strict = (notices or PythonWarnings()).strict
    lists.check()
    if lists.systems and fix is not None:
        raise UsageError(f"--fix {fix}: there is no list of --systems to copy; leave it out")
    files = [*lists.files, *references, *([weights] if weights else [])]
    inputs = InputFiles(files)
    if str(fix) == "-":
        raise UsageError("--fix -: the report is on standard output; name a file or a folder")
    copies = {} if fix is None else _copies(lists, references, fix)
    check_outputs(copies.values(), files)
    with ExitStack() as opened:
        models = _vocabularies(lists)
        first, documents = Findings(), None
        try:
            if lists.systems and references and lists.drop_unreferenced:
                documents, _ = read_targets(lists, references, Findings(), lambda line: None)
                if documents.n_left_out:
                    source, count = display(references[0]), documents.n_left_out
                    first.add(UNREFERENCED, source=source, count=count)
            elif lists.systems:
                documents = own_documents(lists)
            read, _ = made_lists(lists, first, opened, documents)
        except InputError as fault:
            first.refuse(fault)
            return CheckResult(first, None, strict, None)
        if not lists.systems:
            read = replace(lists, kbest=opened.enter_context(spool(lists.kbest)).path)
        read = _with_sources(read, opened)
        findings, summary = examine(
            read, references, weights, models, documents=documents, tokenize=tokenize
        )
        if lists.systems:
            findings = findings.without_repeats(display(read.kbest), first)
        findings.merge(first)
        cleaned = None if fix is None else _clean(lists, read, references, copies)
        inputs.check()
    return CheckResult(findings, summary, strict, cleaned)


def examine(
    lists: Lists,
    references: Sequence[str | Path],
    weights: str | Path | None,
    models: Sequence[KnownWords] = (),
    *,
    documents: Documents | None = None,
    tokenize: str = "none",
) -> tuple[Findings, Summary | None]:
    """Findings about files that can be read twice, and a summary of lists that can be read.

    documents: of the run, if they are known already.
    """
    findings = Findings()
    totals = _weighted_totals(weights, models, findings)
    side = lists.side if lists.missing == AS_SOURCE else NO_FILES
    file = KBestFile(lists.kbest, lists, side, unreported=Findings())
    known = documents is not None
    if documents is None:
        documents, known = _documents(file, references, findings)
    documents, targets = _targets(file, references, documents, findings)
    if any(findings.about({display(path) for path in side.values()}).of_level(True)):
        sources_left_out = replace(lists, missing=AS_EMPTY)
        file = KBestFile(lists.kbest, sources_left_out, unreported=Findings())
    survey = ListSurvey(file.name, targets, models, findings, tokenize=tokenize)
    try:
        form = file.format.name
        pieces = file.in_pieces(documents)
        found = file.read(pieces, findings)
        for _, kbest in progress(found, label="documents", unit="documents", total=len(pieces)):
            survey.add(kbest)
            if totals is not None:
                totals.add(kbest)
    except InputError as fault:
        findings.refuse(fault)
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
        features=survey.features.ranges(),
        sparse=survey.features.sparse,
        duplicates=findings.count_of(DUPLICATE),
        empty=findings.count_of(EMPTY),
        unknown=survey.unknown(),
        bleu=survey.bleu(),
    )


def _with_sources(lists: Lists, copies: ExitStack) -> Lists:
    """The lists with a file of sources, if these are to be candidates (`--missing source`)."""
    if lists.missing != AS_SOURCE:
        return lists
    try:
        found = with_own_sources(lists, copies)
    except InputError:  # reported where the list is read
        return replace(lists, missing=AS_EMPTY)
    check_files(MISSING_SOURCE, found.side)
    return found


def _vocabularies(lists: Lists) -> list[KnownWords]:
    """The vocabularies of the language models."""
    check_names(lists.names)
    if not lists.lms:
        return []
    from rerank.scorers.model_folders import open_model

    saved = [(name, open_model(folder, "cpu")) for name, folder in lists.lms]
    return [KnownWords(name, one.vocabulary.ids, one.about) for name, one in saved]


def _weighted_totals(
    weights: str | Path | None, models: Sequence[KnownWords], findings: Findings
) -> WeightedTotals | None:
    """The check of weights that can be read; None without any."""
    if weights is None:
        return None
    try:
        found = read_weights(weights, findings)
    except InputError as fault:
        findings.refuse(fault)
        return None
    added = [Label(name, 1) for model in models for name in (model.name, f"{model.name}oov")]
    return WeightedTotals(found, display(weights), added, findings)


# Which line belongs to which sentence


def _documents(
    file: KBestFile, references: Sequence[str | Path], findings: Findings
) -> tuple[Documents, bool]:
    """The documents, and whether a file or an option names them; otherwise one per sentence."""
    lists = file.lists
    own = lists.docs is not None or (lists.no_docs is None and _has_documents(file))
    if own:
        try:
            return file.documents(findings), True
        except InputError as fault:
            findings.refuse(fault)
    elif lists.no_docs is None and references:
        stated = _documents_of_reference(lists, references, findings)
        if stated is not None:
            return stated, True
    texts = [*([lists.docs] if lists.docs else []), *_texts(lists, references)]
    n_list = _n_by_id(file, findings)
    n_lines = _n_lines(texts[0], n_list, _role(texts[0], references)) if texts else n_list
    if lists.no_docs == "one":
        return Documents.one(n_lines), True
    return Documents.each(n_lines), lists.no_docs is not None


def _documents_of_reference(
    lists: Lists, references: Sequence[str | Path], findings: Findings
) -> Documents | None:
    """The documents of the first reference, as tune-mert takes them; None if it states none."""
    try:
        documents = documents_of_reference(references, Findings())
    except InputError:  # reported where the reference is read
        return None
    if documents is not None:
        try:
            check_source_order(lists, references, documents, findings)
        except InputError as fault:
            findings.refuse(fault)
    return documents


def _n_by_id(file: KBestFile, findings: Findings) -> int:
    """Number of source lines by the highest id of the list; 0 of a list that cannot be read."""
    try:
        candidates = file.survey.candidates
    except InputError:  # reported where the list is read
        return 0
    try:
        return file.lines_by_id()
    except InputError as fault:
        findings.refuse(fault)
        return candidates


def _has_documents(file: KBestFile) -> bool:
    """Whether the list has the document of every sentence."""
    try:
        return file.annotations[0] is not None
    except InputError:  # reported where the list is read
        return False


def _texts(lists: Lists, references: Sequence[str | Path]) -> list[FilePath]:
    """Files with a line for each source line: the source and the references."""
    return [*([lists.side[SOURCE]] if SOURCE in lists.side else []), *references]


def _role(path: FilePath, references: Sequence[str | Path]) -> Role:
    """Which text of a file with several is meant."""
    return "reference" if path in references else "source"


def _n_lines(path: FilePath, n_list: int, role: Role) -> int:
    """Number of source lines by a text that has a line for each, without blank lines at its end.

    n_list: number by the ids of the list, up to which blank lines at the end count.
    """
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
    docs = file.lists.docs
    model = file.name if docs is None else display(docs)
    sound = []
    for path in _texts(file.lists, references):
        found = Findings()
        try:
            read_texts_of(path, documents, found, model=model, role=_role(path, references))
        except InputError as fault:
            found.refuse(fault)
        else:
            if path in references:
                sound.append(path)  # read once more, together with the others
                continue
        findings.merge(found)
    try:
        texts = read_reference_texts(sound, documents, findings, model=model) if sound else []
        drop = file.lists.drop_unreferenced
        documents, targets = matched(texts, documents, findings, drop=drop)
        return documents, nfc_lines(targets) if file.lists.in_nfc else targets
    except InputError as fault:  # of a text that lacks a sentence
        findings.refuse(fault)
        return documents, []


# Clean copies


def _copies(
    lists: Lists, references: Sequence[str | Path], fix: str | Path
) -> dict[FilePath, str | Path]:
    """Where the clean copy of each file goes."""
    if not Path(fix).is_dir():
        return {lists.kbest: fix}
    files = [lists.kbest, *([lists.docs] if lists.docs else []), *_texts(lists, references)]
    return {path: Path(fix, Path(path).name) for path in files}


def _clean(
    lists: Lists,
    read: Lists,
    references: Sequence[str | Path],
    targets: Mapping[FilePath, str | Path],
) -> CleanCopies:
    """Write clean copies to the targets, unless one of them would have faults.

    read: the lists as they can be read twice.
    """
    file = KBestFile(read.kbest, read, unreported=Findings())
    documents, _ = _documents(file, references, Findings())
    repairs: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="rerank-") as folder:
        copies: dict[FilePath, Path] = {}
        try:
            for path, target in targets.items():
                copies[path] = Path(folder, f"<clean copy of {Path(path).name}>")
                lines, done = (
                    cleaned_list(read.kbest, read)
                    if path == lists.kbest
                    else cleaned_text(path, documents.n_lines)
                )
                if read.in_nfc and path != lists.docs:
                    lines = in_nfc(lines, done)
                with copies[path].open("wb") as copy:
                    copy.writelines(line + b"\n" for line in lines)
                repairs[display(target)] = done
        except InputError as fault:
            remaining = Findings()
            remaining.refuse(fault)
            return CleanCopies({}, remaining)
        docs = None if read.docs is None else copies.get(read.docs, read.docs)
        if isinstance(read.docs, DocumentFile) and docs is not None:
            docs = replace(read.docs, path=docs)
        side = {kind: copies.get(path, path) for kind, path in read.side.items()}
        again = replace(read, kbest=copies[lists.kbest], docs=docs, side=side)
        findings, _ = examine(again, [copies.get(path, path) for path in references], None)
        findings = findings.about(set(map(display, copies.values())))
        if any(findings.of_level(True)):
            return CleanCopies({}, findings)
        with atomic_all(list(targets.values())) as files:
            for path, out in zip(targets, files, strict=True):
                with copies[path].open("rb") as copy:
                    shutil.copyfileobj(copy, out)
    return CleanCopies(repairs, findings)
