"""moses.ini and rescore.ini: lines of weights, the comment that holds alpha, values replaced.

    # alpha: 0.25
    [weight]
    LM0= 0.5            # any comment
    TM0= 0.2 0.2

Alpha is a comment because a section that Moses does not know would stop the decoder, and a line in
`[weight]` that is none would stop its rescore.py; before the section, both pass over it.

Source: scripts/nbest-rescore/rescore.py and moses/Parameter.cpp of
https://github.com/moses-smt/mosesdecoder.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from rerank.errors import InputError, UsageError
from rerank.formats.moses_grammar import is_sparse
from rerank.formats.tokens import NUMBER, shown, written
from rerank.notices import Notices

SECTION = re.compile(rb"\[(.*)\]")
COMMENT = re.compile(rb"(?:^|\s)#.*")

_ALPHA = re.compile(rb"#\s*alpha:\s*(\S+)")
_NAME = re.compile(r"[^\s#\[{][^\s]*")
# a line up to its first weight: `Name= w`, `Name=w`, where a sparse name may hold a `=`, or
# `Name = w` or `Name w`
_LINE = re.compile(rb"\s*(?:(?P<name>\S+)=\s*|(?P<apart>[^\s=]+)\s+(?:=\s*)?)")
_VALUE = re.compile(rb"\S+")


def weight_line(name: str, values: Sequence[float], *, sparse: bool) -> str:
    """`Name= w w`, which reads back to the same bits; `UsageError` for a name that would not."""
    if _NAME.fullmatch(name) is None or is_sparse(name) != sparse:
        raise UsageError(f"an ini file cannot hold the feature name {name!r}; write .json")
    return " ".join([f"{name}=", *(written(w, name).decode() for w in values)])


def alpha_line(alpha: float | None) -> str:
    """The comment that `read_alpha` reads."""
    return f"# alpha: {json.dumps(alpha)}"


def read_alpha(lines: Sequence[bytes], *, source: str = "") -> float | None:
    """Alpha of the comment `# alpha: v`; None without one, and for `null`.

    A comment with anything but a number there is an ordinary one. `InputError` for a second
    alpha and for a number that is not above 0.
    """
    places = _alphas(lines)
    if not places:
        return None
    if len(places) > 1:
        raise InputError(
            "expected one comment '# alpha: …', found two", source=source, line=places[1] + 1
        )
    token = lines[places[0]].split()[-1]
    if token == b"null":
        return None
    if not 0 < float(token) < math.inf:
        raise InputError(
            f"expected an alpha above 0, found {shown(token)}", source=source, line=places[0] + 1
        )
    return float(token)


def merged(
    lines: Sequence[bytes],
    dense: Mapping[str, Sequence[float]],
    sparse: Mapping[str, float],
    alpha: float | None,
    notices: Notices,
    *,
    source: str = "",
) -> list[bytes]:
    """The lines of a moses.ini with the weights that are given; they read back to the same bits.

    All other bytes stay, in `[weight]` too. A comment `# alpha: v` is replaced, or made before
    the section. A feature that the section lacks is appended to it, with a notice. `InputError`
    where there is no section `[weight]`, or where a label has another number of values.
    """
    read_alpha(lines, source=source)  # two of them are refused
    inside = _inside(lines)
    if not inside:
        raise InputError("expected a section [weight] to write into, found none", source=source)
    places: dict[str, list[int]] = {}
    for n in inside:
        places.setdefault(_name(lines[n]), []).append(n)
    new, appended = list(lines), []
    for name, numbers in {**dense, **{name: (value,) for name, value in sparse.items()}}.items():
        line = weight_line(name, numbers, sparse=name in sparse).encode()
        if name not in places:
            notices.add(
                f"weight of {name} appended: a decoder that has no such feature refuses the file",
                source=source,
            )
            appended.append(line)
            continue
        width = sum(len(_VALUE.findall(_weights(lines[n])[1])) for n in places[name])
        if width != len(numbers):
            raise InputError(
                f"expected {len(numbers)} weights of {name} as tuned, found {width}; "
                "is it the ini of this system?",
                source=source,
                line=places[name][0] + 1,
            )
        tokens = iter(line.split()[1:])
        for n in places[name]:
            new[n] = _rewritten(lines[n], tokens)
    end = 1 + max(n for n in inside if n == inside[0] or lines[n].strip())
    new[end:end] = appended
    return _with_alpha(new, alpha, inside[0])


def _alphas(lines: Sequence[bytes]) -> list[int]:
    """Indices of the lines that are a comment with an alpha."""
    found = ((n, _ALPHA.fullmatch(line.strip())) for n, line in enumerate(lines))
    return [n for n, m in found if m and (m[1] == b"null" or NUMBER.fullmatch(m[1]))]


def _with_alpha(lines: Sequence[bytes], alpha: float | None, header: int) -> list[bytes]:
    """The lines with this alpha in place of the old one, or before the line `header`."""
    line, places = alpha_line(alpha).encode(), _alphas(lines)
    if places:
        return [*lines[: places[0]], line, *lines[places[0] + 1 :]]
    return [*lines[:header], *([] if alpha is None else [line]), *lines[header:]]


def _inside(lines: Sequence[bytes]) -> list[int]:
    """Indices of the lines of [weight], its header first."""
    inside, found = False, []
    for n, line in enumerate(lines):
        if section := SECTION.fullmatch(COMMENT.sub(b"", line).strip()):
            inside = section[1] == b"weight"
        if inside:
            found.append(n)
    return found


def _name(line: bytes) -> str:
    """The feature that a line of [weight] is about; empty if it is about none."""
    found = _LINE.match(COMMENT.sub(b"", line))
    return (found["name"] or found["apart"]).decode() if found else ""


def _weights(line: bytes) -> tuple[bytes, bytes, bytes]:
    """A line of weights: what is before them, they, the comment behind."""
    comment = COMMENT.search(line)
    stop = comment.start() if comment else len(line)
    name = _LINE.match(line[:stop])
    start = name.end() if name else stop
    return line[:start], line[start:stop], line[stop:]


def _rewritten(line: bytes, tokens: Iterator[bytes]) -> bytes:
    """A line of weights with the next ones of other weights."""
    before, values, after = _weights(line)
    return before + _VALUE.sub(lambda _: next(tokens), values) + after
