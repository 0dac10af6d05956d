#!/usr/bin/env python3
"""Moses with reranking: a decoder for mert-moses.pl whose n-best lists have our features, too.

    decoder.py --moses MOSES --weight NAME=W [--weight NAME=W …] RERANK-OPTIONS -- MOSES-OPTIONS

RERANK-OPTIONS are those of `rerank decode` that say which features are added and to which documents
the sentences belong: --docs, --lm, --scorer, --search and so on. MOSES-OPTIONS are what the caller
gives to Moses; they go to MOSES, but for the weights of our features, which it does not know.

- `-show-weights`: the lines of MOSES, and a line `NAME= W` for each --weight.
- otherwise: MOSES writes an n-best list, `rerank decode` adds the features under the path that
  it decodes with the current weights, and the list goes where `-n-best-list` says. The
  translations on that path are the standard output, a line for each source sentence.

The weights are those of the file `-config`, over these `-weight-overwrite`, and `-weight-file`.
Features of ours that none of them has begin at their --weight.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rerank.commands import exit_code_of
from rerank.errors import InputError, RerankError, UsageError
from rerank.files.outputs import atomic
from rerank.formats.moses_grammar import layout
from rerank.formats.weight_files import read_weights, weights_from_lines
from rerank.formats.weights import Weights, to_json
from rerank.notices import Notices

OWN = ("--kbest", "--weights", "--out", "--kbest-out", "--summary", "--first-id", "--dry-run")
_OPTION = re.compile(r"--?([^-0-9].*)")  # Moses takes -1 and -0.5 for values
_SHORT = {"f": "config", "i": "input-file"}


@dataclass(frozen=True)
class MosesOptions:
    """Options of a Moses command line in their order, each with its values."""

    options: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def parsed(cls, words: Sequence[str]) -> MosesOptions:
        """Options of the words of a command line."""
        found: list[tuple[str, list[str]]] = []
        for word in words:
            if option := _OPTION.fullmatch(word):
                found.append((_SHORT.get(option[1], option[1]), []))
            elif found:
                found[-1][1].append(word)
            else:
                raise UsageError(f"expected an option of Moses after --, found {word!r}")
        return cls(tuple((name, tuple(values)) for name, values in found))

    def __contains__(self, name: str) -> bool:
        return any(option == name for option, _ in self.options)

    def values(self, name: str) -> tuple[str, ...]:
        """Values of an option, the last one of this name; none without it."""
        return next((values for option, values in reversed(self.options) if option == name), ())

    def with_values(self, name: str, *values: str) -> MosesOptions:
        """The options with these values of one; without it if there are none."""
        others = tuple(pair for pair in self.options if pair[0] != name)
        return MosesOptions((*others, (name, values)) if values else others)

    def words(self) -> list[str]:
        """The command line again."""
        return [word for name, values in self.options for word in (f"-{name}", *values)]


@dataclass(frozen=True)
class NBest:
    """What `-n-best-list FILE N [distinct]` asks for; file: None where it is not given."""

    file: str | None
    size: tuple[str, ...]

    @classmethod
    def of(cls, options: MosesOptions, default: int) -> NBest:
        """The list that the options ask for; else one of a default size, for ourselves alone."""
        values = options.values("n-best-list")
        if not values:
            if "n-best-list" in options:
                raise UsageError("expected -n-best-list FILE SIZE [distinct], found no file")
            return cls(None, (str(default), "distinct"))
        if len(values) < 2 or not values[1].isdigit():
            raise UsageError(
                f"expected -n-best-list FILE SIZE [distinct], found {' '.join(values)!r}"
            )
        return cls("-" if values[0] == "/dev/stdout" else values[0], values[1:])


def cut(lines: Iterable[str], names: Mapping[str, float]) -> tuple[list[str], list[str]]:
    """Lines of a moses.ini without those of [weight] that have one of the names, and these."""
    kept: list[str] = []
    removed: list[str] = []
    inside = False
    for line in lines:
        if section := re.match(r"\s*\[(.*)\]", line):
            inside = section[1] == "weight"
        name = re.match(r"\s*([^\s=#]+)\s*=", line)
        ours = inside and name is not None and name[1] in names
        (removed if ours else kept).append(line)
    return kept, removed


def cut_weights(text: str, names: Mapping[str, float]) -> tuple[list[str], list[str]]:
    """Words of `-weight-overwrite` for Moses, and those that are weights of ours."""
    moses: list[str] = []
    ours: list[str] = []
    words = moses
    for word in text.split():
        if word.endswith("="):
            words = ours if word[:-1] in names else moses
        words.append(word)
    return moses, ours


def as_lines(words: Iterable[str]) -> list[bytes]:
    """Words of `-weight-overwrite` as lines of a weights file."""
    return re.sub(r" (?=\S+=( |$))", "\n", " ".join(words)).encode().split(b"\n")


@dataclass(frozen=True)
class Session:
    """One call of the wrapper. own: our features with their start weights, in order."""

    moses: str
    own: Mapping[str, float]
    options: MosesOptions
    folder: Path  # for temporary files
    notices: Notices

    def __post_init__(self) -> None:
        if not self.options.values("config"):
            raise UsageError("expected -config FILE, or -f FILE, among the options of Moses")

    def for_moses(self) -> MosesOptions:
        """The options without weights of ours, also in the file `-config`."""
        options = self.options
        words, _ = cut_weights(" ".join(options.values("weight-overwrite")), self.own)
        options = options.with_values("weight-overwrite", *([" ".join(words)] if words else []))
        config = Path(options.values("config")[0])
        try:
            lines = config.read_text(encoding="utf-8", errors="surrogateescape").splitlines(True)
        except OSError as fault:
            raise InputError(f"cannot be read: {fault.strerror}", source=str(config)) from None
        kept, removed = cut(lines, self.own)
        if not removed:
            return options
        copy = self.folder / "moses.ini"
        copy.write_text("".join(kept), encoding="utf-8", errors="surrogateescape")
        return options.with_values("config", str(copy))

    def weights(self) -> Weights:
        """The current weights: of `-config`, over these those of the command line."""
        result = read_weights(self.options.values("config")[0], self.notices)
        dense = {name: (weight,) for name, weight in self.own.items()} | dict(result.dense)
        sparse = dict(result.sparse)
        for file in self.options.values("weight-file"):
            more = read_weights(file, self.notices)
            dense |= more.dense
            sparse |= more.sparse
        if overwritten := " ".join(self.options.values("weight-overwrite")).split():
            more = weights_from_lines(
                as_lines(overwritten), self.notices, source="-weight-overwrite"
            )
            dense |= more.dense
            sparse |= more.sparse
        return Weights(dense, sparse)

    def call(self, options: MosesOptions, out: int | None = None) -> None:
        """Run Moses; SystemExit with its exit status if it fails."""
        sys.stdout.flush()
        try:
            done = subprocess.run([self.moses, *options.words()], stdout=out, check=False)
        except OSError as fault:
            raise UsageError(f"--moses {self.moses}: {fault.strerror}") from None
        if done.returncode:
            print(f"decoder.py: {self.moses} failed", file=sys.stderr)
            raise SystemExit(max(1, done.returncode))

    def show_weights(self) -> None:
        """Print the weights of Moses' features, then of ours."""
        self.call(self.for_moses())
        now = self.weights().dense
        for name in self.own:
            print(f"{name}=", *(f"{value:.9g}" for value in now[name]))

    def decode(self, reranking: Sequence[str], default_size: int) -> None:
        """Write the list that is asked for, with our features, and the translations."""
        asked = NBest.of(self.options, default_size)
        plain, first_best = self.folder / "moses.nbest", self.folder / "moses.1best"
        moses = self.for_moses().with_values("n-best-list", str(plain), *asked.size)
        with first_best.open("wb") as file:
            self.call(moses, file.fileno())
        weights = self.folder / "weights.json"
        weights.write_bytes(to_json(self._of_list(plain)))
        out, scored = self.folder / "out", self.folder / "rerank.nbest"
        files = {"kbest": plain, "weights": weights, "out": out, "kbest-out": scored}
        given = [word for name, path in files.items() for word in (f"--{name}", str(path))]
        status = exit_code_of(
            ["decode", *given, "--first-id", self._first_id(), "--quiet", *reranking]
        )
        if status:
            print(
                "decoder.py: rerank decode failed on the list of Moses, with the weights of "
                "-config, -weight-overwrite and --weight",
                file=sys.stderr,
            )
            raise SystemExit(status)
        self._check_names(plain, scored)
        sentences, lines = first_best.read_bytes().count(b"\n"), out.read_bytes().count(b"\n")
        if lines != sentences:
            raise UsageError(
                f"expected documents of the {sentences:,} sentences that Moses translated, found "
                f"{lines:,}; give the --docs of this input"
            )
        if asked.file is not None:
            copy(scored, asked.file)
        if asked.file != "-":  # Moses, too, prints no translations after a list
            copy(out, "-")

    def _first_id(self) -> str:
        """Id of the first sentence in lists of Moses."""
        return next(iter(self.options.values("start-translation-id")), "0")

    def _of_list(self, kbest: Path) -> Weights:
        """The current weights of the features in a list of Moses, and of ours.

        A moses.ini has weights of features that are not tuned, too, which lists leave out.
        """
        known = set(features_of(kbest))
        if both := sorted(known & set(self.own)):
            raise UsageError(f"--weight {both[0]}=…: Moses has a feature of this name; rename ours")
        weights = self.weights()
        dense = weights.dense.items()
        kept = {name: values for name, values in dense if name in known or name in self.own}
        return replace(weights, dense=kept)

    def _check_names(self, plain: Path, scored: Path) -> None:
        """UsageError unless the list's new features are those of --weight, in their order."""
        new = features_of(scored)[len(features_of(plain)) :]
        if new != list(self.own):
            cure = " ".join(f"--weight {name}={self.own.get(name, 0):g}" for name in new)
            raise UsageError(
                f"expected the features {', '.join(new)}, as rerank appends them, found those of "
                f"--weight: {', '.join(self.own)}; give {cure}"
            )


def copy(source: Path, target: str) -> None:
    """Copy a file; a target .gz is packed, - is standard output."""
    with source.open("rb") as file, atomic(target) as copied:
        shutil.copyfileobj(file, copied)


def features_of(kbest: Path) -> list[str]:
    """Names of the dense features of a list, from its first line."""
    with kbest.open("rb") as file:
        line = next((line for line in file if line.strip()), None)
    if line is None:
        raise InputError("expected an n-best list of Moses, found no hypotheses")
    return [label.name for label in layout(line.rstrip(b"\r\n")).labels]


def start_weight(text: str) -> tuple[str, float]:
    """Name and weight of NAME=W."""
    name, _, value = text.partition("=")
    if re.fullmatch(r"[A-Za-z][0-9A-Za-z]*", name) is None:
        raise argparse.ArgumentTypeError(f"expected NAME=W, a name of letters and digits: {text!r}")
    try:
        return name, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number after {name}=: {text!r}") from None


def main(argv: Sequence[str]) -> int:
    """Exit status of a call of the wrapper."""
    parser = argparse.ArgumentParser(
        description="Moses with reranking, for mert-moses.pl; see README.md beside this program.",
        usage="%(prog)s --moses MOSES --weight NAME=W … RERANK-OPTIONS -- MOSES-OPTIONS",
        allow_abbrev=False,
    )
    parser.add_argument("--moses", required=True, help="The decoder to wrap, a program.")
    parser.add_argument(
        "--weight",
        required=True,
        action="append",
        type=start_weight,
        metavar="NAME=W",
        help="A feature that rerank appends, and its start weight; one option for each, in order.",
    )
    parser.add_argument(
        "--n-best",
        type=int,
        default=100,
        metavar="N",
        help="Distinct candidates to choose from where the caller asks for no list [100].",
    )
    words = list(argv)
    place = words.index("--") if "--" in words else len(words)
    options, reranking = parser.parse_known_args(words[:place])
    for word in reranking:
        if word.partition("=")[0] in OWN:
            parser.error(f"{word}: decoder.py itself gives this option to rerank decode")
    notices = Notices()
    try:
        with tempfile.TemporaryDirectory(prefix="rerank-moses-") as folder:
            moses = MosesOptions.parsed(words[place + 1 :])
            session = Session(options.moses, dict(options.weight), moses, Path(folder), notices)
            if "show-weights" in moses:
                session.show_weights()
            else:
                session.decode(reranking, options.n_best)
    except RerankError as fault:
        print(f"decoder.py: {fault}", file=sys.stderr)
        return fault.exit_code
    except OSError as fault:
        print(f"decoder.py: {fault.filename}: {fault.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
