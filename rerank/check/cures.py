"""Cures for what readers accept with a notice that does not name one."""

from __future__ import annotations

_FIX = "rerank check --fix OUT"
_CURES = {  # how a notice begins: its cure
    "byte-order mark": f"remove it: {_FIX}, or sed 's/\\xef\\xbb\\xbf//g' in XML",
    "CRLF line ends": f"{_FIX} writes LF",
    "bytes after the end of the": f"{_FIX} writes the data alone",
    "separator other than LF": "replace them by spaces, if the source has spaces there",
    "no-break space": "replace them by ASCII spaces, if the models have learnt them so",
    "ideographic space": "replace them by ASCII spaces, if the models have learnt them so",
    "zero-width space": "remove them: sed 's/\\xe2\\x80\\x8b//g'",
    "soft hyphen": "remove them: sed 's/\\xc2\\xad//g'",
    "bidirectional control": "remove them, if the models have not learnt them",
    "blank line, skipped": f"{_FIX} leaves them out",
    "blank line that fills up": "nothing to do, if the decoder has found fewer translations",
    "interleaved ids": f"{_FIX} sorts the list",
    "sentences in the order of batches": f"{_FIX} sorts the list",
    "source line without hypotheses": (
        "translate these lines again, accept empty lines of the output, or give --missing source"
    ),
    "source line that is its own translation": "nothing to do, or translate these lines again",
    "list with one hypothesis per sentence": "let the decoder write n-best lists",
    "empty hypothesis": "translate these lines again, if the sources are not empty",
    "duplicate hypothesis": "let the decoder write distinct hypotheses, as with Moses' `distinct`",
    "hypothesis that contains <s>": "remove control words of the decoder, or escape them",
    "blank reference": "leave such sentences out of tuning and evaluation sets",
    "reference that only says": "leave such sentences out of tuning and evaluation sets",
    "hypotheses identical to reference": "is a reference given as a system's output?",
    "old Moses labels": "nothing to do",
    "no blank between label and value": "nothing to do, if Marian wrote the list",
    "Marian's word scores": "nothing to do",
    "features without labels": "let Moses write labels: -labeled-n-best-list true",
    "'|||' without blanks": "nothing to do; other tools may need blanks",
    "no total column": "nothing to do, unless the feature `total` is used",
    "line with sparse features": "nothing to do; tune-mert leaves their weights as they are",
    "hypothesis without some of the features": "nothing to do, if the decoder leaves out zeros",
    "hypothesis without P- lines": "give fairseq-generate no --quiet, and keep its P- lines",
    "feature renamed": "nothing to do; weights may have either name",
    "infinite number, clipped": "nothing to do, if the value is what such candidates deserve",
    "line that is no output of fairseq": "nothing to do; log to another file next time",
    "line end inside a text": "nothing to do, if the line end is only layout",
    "[weight-file] ignored": "add its weights to the file",
    "weights without names": "give them names as in the list",
    "weight that Moses never tunes": "nothing to do",
}


def cure_of(kind: str) -> str:
    """`; ` and the cure for a notice that begins as one of the table; otherwise empty."""
    cures = (cure for start, cure in _CURES.items() if kind.startswith(start))
    return "".join(f"; {cure}" for cure in cures)
