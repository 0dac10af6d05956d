"""moses.ini and rescore.ini: weights and alpha read from them and written into them.

    # alpha: 0.25
    [weight]
    LM0= 0.5            # any comment
    TM0= 0.2 0.2

Older files have a section for the weights of each function, `[weight-l]` for language models, whose
names here are those of old k-best lists, `lm`. `[weight-file]` names a file of sparse weights.
Weights of functions that are never tuned, and so in no k-best list, are left out: `tuneable=false`
in `[feature]`, and lines `Name UNTUNEABLE` of `moses -show-weights`.

Alpha is in a comment before `[weight]`, because Moses refuses unknown sections and its rescore.py
refuses other lines inside `[weight]`; both ignore such a comment.

Source: scripts/nbest-rescore/rescore.py and moses/Parameter.cpp of
https://github.com/moses-smt/mosesdecoder.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from rerank.errors import InputError, UsageError, shown
from rerank.files.encoding import LARGEST, NUMBER
from rerank.formats.moses_grammar import features, is_sparse
from rerank.formats.tokens import Place, number, written
from rerank.notices import Notices

_SECTION = re.compile(rb"\[(.*)\]")
_COMMENT = re.compile(rb"(?:^|\s)#.*")

_number = partial(number, cure="; weights are finite numbers")
_SCALE = re.compile(rb"#\s*(\w+):\s*(\S+)")
_SAME = ("d", "w", "lex", "dlm", "pp", "wt", "pb", "glm", "lr", "bl")
_OLD_SECTIONS = {  # and their labels in k-best lists: ABBR_FULL_MAP of old mert-moses.pl
    **{f"weight-{label}".encode(): label for label in _SAME},
    **{b"weight-l": "lm", b"weight-t": "tm", b"weight-generation": "g", b"weight-i": "I"},
}
_UNTUNEABLE = b"UNTUNEABLECOMPONENT"  # of `moses -show-weights`: k-best lists lack its value
_FALSE = (b"false", b"no", b"0")
_NAME = re.compile(r"[^\s#\[{][^\s]*")
# a line up to its first weight: `Name= w`, `Name=w`, where a sparse name may hold a `=`, or
# `Name = w` or `Name w`
_LINE = re.compile(rb"\s*(?:\S+=\s*|[^\s=]+\s+(?:=\s*)?)")


def weight_line(name: str, values: Sequence[float], *, sparse: bool) -> str:
    """Line `Name= w w`, without loss of precision; UsageError for a name that no ini can hold."""
    if _NAME.fullmatch(name) is None or is_sparse(name) != sparse:
        raise UsageError(f"an ini file cannot hold the feature name {name!r}; write .json")
    return " ".join([f"{name}=", *(written(w, name).decode() for w in values)])


def scale_line(name: str, scale: float | None) -> str:
    """The comment that `read_scale` reads."""
    return f"# {name}: {json.dumps(scale)}"


def read_scale(lines: Sequence[bytes], place: Place, name: str = "alpha") -> float | None:
    """The number of the comment `# alpha: v`; None if there is none, or if it is `null`.

    name: another word than alpha. InputError for a second such comment, and for a number that is
    not above 0.
    """
    places = _scales(lines, name)
    if len(places) > 1:
        raise place.fault(f"expected one comment '# {name}: …', found two", places[1] + 1)
    token = lines[places[0]].split()[-1] if places else b"null"
    if token == b"null":
        return None
    if not 0 < float(token) <= LARGEST:
        raise place.fault(f"expected {name} above 0, found {shown(token)}", places[0] + 1)
    return float(token)


def read_ini(
    lines: Sequence[bytes], notices: Notices, *, source: str = "", sparse_file: bool = False
) -> tuple[dict[str, tuple[float, ...]], dict[str, float], float | None]:
    """Dense weights, sparse weights and alpha of lines `Name= w w`, `Name w w` or numbers alone.

    If the lines have sections, only those of [weight] are read or, without it, the old ones such as
    [weight-l]. Weights of functions that are never tuned are left out, with a notice. sparse_file:
    whether [weight-file] is read by the caller, so that there may be no weights here.
    """
    dense: dict[str, list[float]] = {}
    sparse: dict[str, float] = {}
    place = Place(source, notices)
    sectioned = _sectioned(lines)
    texts, sections = [text for text, _ in sectioned], [section for _, section in sectioned]
    wanted = b"weight" if sections and sections[-1] is not None else None
    old = wanted is not None and wanted not in sections
    if wanted is None:
        if start := _init_opt(texts):
            place.note("ranges-of-mert", line=start)
            lines, texts = lines[:start], [*texts[:start], *[b""] * (len(texts) - start)]
        texts = _on_one_line(texts)
    untuned = _untuned(sectioned)
    for text, section in zip(place.numbered(texts), sections, strict=True):
        if _SECTION.fullmatch(text):
            if section == b"weight-file" and not sparse_file:
                place.note("weight-file-ignored")
        elif text and (section == wanted or (old and section in _OLD_SECTIONS)):
            words = text.replace(b"=", b" ", 1).split()
            if words and (words[0] in untuned or words[1:] == [b"UNTUNEABLE"]):
                place.note("untuned-in-file")
                continue
            if _UNTUNEABLE in text:
                place.note("untuneable-component")
                text = b" ".join(word for word in text.split() if word != _UNTUNEABLE)
                if not text or text.endswith(b"="):
                    continue
            try:
                if old:
                    text = f"{_OLD_SECTIONS[section or b'']}= ".encode() + text
                more_dense, more_sparse = features(_labelled(text), _number)
                for name in sparse.keys() & more_sparse:
                    raise InputError(f"expected one weight of {name!r}, found two")
            except InputError as fault:
                raise place.fault(str(fault)) from None
            sparse |= more_sparse
            for name, values in more_dense.items():
                dense.setdefault(name, []).extend(values)
    if not dense and not sparse and not sparse_file:
        raise InputError(
            "expected weights, as JSON or as lines 'Name= w w' of a section [weight], found none",
            source=source,
        )
    alpha = read_scale(lines, place)
    return {name: tuple(values) for name, values in dense.items()}, sparse, alpha


def weight_file(lines: Sequence[bytes]) -> tuple[str, int] | None:
    """The file that [weight-file] names, and its line from 1; None without such a section."""
    for n, (text, section) in enumerate(_sectioned(lines), 1):
        if section == b"weight-file" and text and not _SECTION.fullmatch(text):
            return text.decode(), n
    return None


def _sectioned(lines: Iterable[bytes]) -> list[tuple[bytes, bytes | None]]:
    """The lines without comments and white space around, each with its section.

    A section begins with its header; None before the first one.
    """
    sectioned: list[tuple[bytes, bytes | None]] = []
    current = None
    for line in lines:
        text = _COMMENT.sub(b"", line).strip()
        if header := _SECTION.fullmatch(text):
            current = header[1]
        sectioned.append((text, current))
    return sectioned


def _untuned(sectioned: Iterable[tuple[bytes, bytes | None]]) -> set[bytes]:
    """Names of the functions of [feature] that are `tuneable=false`.

    One without `name=` is called by its class and a number, as in moses/FF/FeatureFunction.cpp.
    """
    names: set[bytes] = set()
    unnamed: Counter[bytes] = Counter()
    for text, section in sectioned:
        words = text.split()
        if section == b"feature" and words and not words[0].startswith(b"["):
            options = dict(word.split(b"=", 1) for word in words[1:] if b"=" in word)
            name = options.get(b"name")
            if name is None:
                name = words[0] + b"%d" % unnamed[words[0]]
                unnamed[words[0]] += 1
            if options.get(b"tuneable") in _FALSE:
                names.add(name)
    return names


def _init_opt(texts: Sequence[bytes]) -> int | None:
    """Number from 1 of the line of start weights in an init.opt of Moses' mert; None in others.

    It has three lines of as many numbers: start, least and largest values. Three lines of one
    number each are three weights.
    """
    rows = [text.split() for text in texts if text]
    if len(rows) != 3 or len(set(map(len, rows))) > 1 or len(rows[0]) < 2:
        return None
    if not all(NUMBER.fullmatch(token) for row in rows for token in row):
        return None
    ordered = all(float(a) <= float(b) for a, b in zip(rows[1], rows[2], strict=True))
    return next(n for n, text in enumerate(texts, 1) if text) if ordered else None


def _on_one_line(texts: list[bytes]) -> list[bytes]:
    """Lines of numbers alone, one or several a line, as one line with all of them."""
    numbers = [token for text in texts for token in text.split()]
    if sum(map(bool, texts)) < 2 or not all(map(NUMBER.fullmatch, numbers)):
        return texts
    first = next(n for n, text in enumerate(texts) if text)
    return [b" ".join(numbers) if n == first else b"" for n in range(len(texts))]


def _labelled(text: bytes) -> bytes:
    """The line as a feature column: `Name w` and `Name = w` become `Name= w`."""
    text = re.sub(rb"\s+=", b"=", text)
    name = text.split()[0]
    if b"=" in name or name.endswith(b":") or NUMBER.fullmatch(name):
        return text
    return name + b"=" + text[len(name) :]


def merged(
    lines: Sequence[bytes],
    dense: Mapping[str, Sequence[float]],
    sparse: Mapping[str, float],
    alpha: float | None,
    notices: Notices,
    *,
    source: str = "",
) -> bytes:
    """Content of a moses.ini of these lines with other weights, without loss of precision.

    All other bytes are kept, in `[weight]` too. A comment `# alpha: v` is replaced, or added before
    the section. A feature that the section lacks is appended to it, with a notice. InputError if
    there is no section `[weight]`, or if a label has another number of values.
    """
    place = Place(source, notices, 0)
    read_scale(lines, place)  # refuses two of them
    inside = [n for n, (_, section) in enumerate(_sectioned(lines)) if section == b"weight"]
    if not inside:
        raise place.fault("expected a section [weight] to write into, found none")
    places: dict[str, list[int]] = {}
    for n in inside[1:]:
        label = _parts(lines[n])[0].strip().removesuffix(b"=").rstrip()
        places.setdefault(label.decode(), []).append(n)
    new, appended = list(lines), dict[str, bytes]()
    for name, numbers in {**dense, **{name: (value,) for name, value in sparse.items()}}.items():
        line = weight_line(name, numbers, sparse=name in sparse).encode()
        if name not in places:
            appended[name] = line
            continue
        width = sum(len(_parts(lines[n])[1].split()) for n in places[name])
        if width != len(numbers):
            raise place.fault(
                f"expected {len(numbers)} weights of {name} as tuned, found {width}; "
                "is it the ini of this system?",
                places[name][0] + 1,
            )
        tokens = iter(line.split()[1:])
        for n in places[name]:
            new[n] = _rewritten(lines[n], tokens)
    end = 1 + max(n for n in inside if n == inside[0] or lines[n].strip())
    new[end:end] = appended.values()
    if appended:
        place.note("appended-weight", names=list(appended))
    comment, scales = scale_line("alpha", alpha).encode(), _scales(new)
    if scales:
        new[scales[0]] = comment
    elif alpha is not None:
        new.insert(inside[0], comment)
    return b"".join(line + b"\n" for line in new)


def _scales(lines: Sequence[bytes], name: str = "alpha") -> list[int]:
    """Indices of the comments with a scale of this name."""
    matches = ((n, _SCALE.fullmatch(line.strip())) for n, line in enumerate(lines))
    named = ((n, m[2]) for n, m in matches if m and m[1] == name.encode())
    return [n for n, value in named if value == b"null" or NUMBER.fullmatch(value)]


def _parts(line: bytes) -> tuple[bytes, bytes, bytes]:
    """Parts of a line of [weight]: up to the weights, the weights, the comment after them."""
    comment = _COMMENT.search(line)
    stop = comment.start() if comment else len(line)
    name = _LINE.match(line[:stop])
    start = name.end() if name else stop
    return line[:start], line[start:stop], line[stop:]


def _rewritten(line: bytes, tokens: Iterator[bytes]) -> bytes:
    """A line of weights with its values replaced by the next tokens."""
    before, values, after = _parts(line)
    return before + re.sub(rb"\S+", lambda _: next(tokens), values) + after
