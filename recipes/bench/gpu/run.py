"""What a GPU makes of the product: tests, scoring, training, decoding, in ten minutes at most.

    python recipes/bench/gpu/run.py [--data DATA] [--part PART …]
    python recipes/bench/gpu/run.py --part kernels --case rnnlm       # where the time goes
    python recipes/bench/gpu/run.py --device cpu --quick              # tiny sizes: whether it runs

Models have random weights of the sizes that are printed, which is enough for speed; lists are made
up (`recipes/bench/load/generate.py`), or those of `test` of DATA (`tvsub-zh-en`). README.md
explains the tables. Each is printed once it is there, and rows that would begin after `--minutes`
are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice, product
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np
import torch
from plain import precision

BENCH = Path(__file__).parents[1]
sys.path += [str(BENCH), str(BENCH / "load")]

import generate  # noqa: E402  # of load; those below of bench, but cases
import training  # noqa: E402
from cases import (  # noqa: E402
    PRECISIONS,
    QUICK,
    REAL,
    TEST,
    TYPES,
    Case,
    Scores,
    Sizes,
    attention_case,
    causal_case,
    word_case,
)
from lists import Set, Text  # noqa: E402
from measuring import machine, matmul_peak, synchronise  # noqa: E402
from tasks import seeded  # noqa: E402

from lm.checkpoint import save_model  # noqa: E402
from lm.corpus import Corpus  # noqa: E402
from lm.model import Config  # noqa: E402
from lm.side_information import SideText  # noqa: E402
from lm.vocabulary import Vocabulary  # noqa: E402

DOCUMENTS = 12  # of a set
PRODUCTS = [(4096,) * 3, (8192,) * 3, (8192, 1024, 32768)]


# Measuring


def fastest(run: Callable[[], Scores]) -> tuple[float, Scores]:
    """Seconds of the fastest of up to three runs after a first one, which is not timed."""
    result, seconds, began = run(), float("inf"), perf_counter()
    while seconds == float("inf") or perf_counter() - began < min(5.0, 3 * seconds):
        synchronise()
        start = perf_counter()
        result = run()
        synchronise()
        seconds = min(seconds, perf_counter() - start)
    return seconds, result


def measured(run: Callable[[], Any], device: torch.device) -> tuple[Any, str]:
    """What `run` returns, None where memory runs out, and the most memory held, in MiB."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    try:
        result = run()
    except torch.OutOfMemoryError:
        return None, "out of memory"
    held = torch.cuda.max_memory_allocated(device) >> 20 if device.type == "cuda" else None
    return result, "–" if held is None else f"{held:,}"


def difference(one: Scores, other: Scores) -> float:
    """Largest difference of scores, in nats."""
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


class Report:
    """Tables that are printed row by row, until the time is over."""

    def __init__(self, minutes: float) -> None:
        self.end = perf_counter() + 60 * minutes

    def table(self, title: str, columns: Sequence[str]) -> None:
        """Begin a table."""
        print(f"\n## {title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)

    def row(self, *cells: object) -> None:
        """One row."""
        print(f"| {' | '.join(map(str, cells))} |", flush=True)

    def late(self, *cells: object) -> bool:
        """Whether the time is over, which a row then says."""
        over = perf_counter() > self.end
        if over:
            self.row(*cells, "no time left")
        return over


def score_rows(
    report: Report,
    case: Case,
    data: Set,
    sizes: Sizes,
    device: torch.device,
    peaks: dict[str, float],
) -> None:
    """Rows of a model: each precision, ours and the script's."""
    few = Set("", data.lists[: sizes.checked], data.first[: sizes.checked])
    truth = case.ours(torch.device("cpu"), "float32", few)()
    count, operations = case.count(data), case.flops(data)
    for dtype in PRECISIONS:
        if report.late(case.name, dtype):
            return
        own = case.ours(device, dtype, few)()
        ours, memory = measured(lambda d=dtype: fastest(case.ours(device, d, data))[0], device)
        with precision(dtype, device):
            same = case.plain(device, dtype, few)()
            script, theirs = measured(
                lambda d=dtype: fastest(case.plain(device, d, data))[0], device
            )
        report.row(
            case.name,
            dtype,
            f"{count / ours:,.0f}" if ours else memory,
            f"{count / script:,.0f}" if script else theirs,
            f"{script / ours:.1f}" if script and ours else "–",
            f"{operations / ours / peaks[dtype]:.1%}" if ours else "–",
            memory,
            f"{difference(own, same):.1e}",
            f"{difference(own, truth):.1e}",
        )


# Parts


def tests(device: torch.device, quick: bool) -> None:
    """Print what `pytest -m gpu` says last."""
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider"]
    command += ["tests/lm/test_gpu.py", "tests/runs/test_gpu.py", *(["-k", "rnnlm-None"] * quick)]
    variables = {**os.environ, "RERANK_TEST_DEVICE": str(device)}
    try:
        run = subprocess.run(
            command,
            cwd=BENCH.parents[1],
            env=variables,
            timeout=240,
            capture_output=True,
            text=True,
        )
        said = [line for line in run.stdout.splitlines() if line.strip()] or [run.stderr]
    except subprocess.TimeoutExpired:
        said = ["not done after 240 s"]
    print(f"\n## pytest -m gpu\n\n{said[-1]}", flush=True)
    for line in said[:-1]:
        if line.startswith(("FAILED", "ERROR")):
            print(f"    {line}")


def made_up(sentences: int, words: int) -> Set:
    """Lists of 94 candidates of documents of equal length, in the ids of their words' ranks."""
    drawn = generate.Lists(TEST[2], 1, 0, 1)
    ids = {word: min(3 + i, words - 1) for i, word in enumerate(drawn.words)}
    lists = [
        [[ids[word] for word in text.split(" ") if word] for text in drawn.sentence().texts]
        for _ in range(sentences)
    ]
    every = max(1, sentences // DOCUMENTS)
    return Set("", lists, [t % every == 0 for t in range(sentences)])


def scoring(
    report: Report, lists: Set, sizes: Sizes, device: torch.device, cases: Sequence[str]
) -> None:
    """The table of hypotheses a second of some cases, after the device's own products."""
    shapes = [(64,) * 3] if sizes is QUICK else PRODUCTS
    peaks = {}
    report.table("Products", ["precision", "TFLOP/s"])
    for dtype in PRECISIONS:
        with precision(dtype, device):
            peaks[dtype] = matmul_peak(device, TYPES[dtype], shapes)
        report.row(dtype, f"{peaks[dtype] / 1e12:,.3g}")
    columns = ["model", "precision", "ours/s", "script/s", "ours ÷ script", "of products", "MiB"]
    report.table("Hypotheses a second", [*columns, "max |Δ|: script", "CPU, float32"])
    for name in cases:
        try:
            case = CASES[name](sizes)
        except ImportError as fault:
            report.row(name, f"not measured: {fault}")
            continue
        data = lists.head(sizes.sentences[case.name])
        every = max(1, len(data.lists) // DOCUMENTS)  # so that as many documents are in step
        data = replace(data, first=[t % every == 0 for t in range(len(data.lists))])
        score_rows(report, case, data, sizes, device, peaks)


def text_of(sizes: Sizes, sentences: int) -> Corpus:
    """A text of Zipf words, forty sentences a document, and a source as long."""
    rng = np.random.default_rng(1)
    lengths = np.clip(rng.lognormal(3.0, 0.45, sentences), 4, 80).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    chances = 1 / (np.arange(sizes.words - 3) + 2.7)
    drawn = rng.choice(len(chances), offsets[-1], p=chances / chances.sum()) + 3
    tokens = drawn.astype(np.int32)
    side = {"source": SideText(tokens[::-1].copy(), offsets)}
    return replace(Corpus(tokens, offsets, np.arange(0, sentences + 1, 40)), side=side)


def trainings(report: Report, sizes: Sizes, device: torch.device) -> None:
    """The table of words a second in training."""
    columns = ["model", "training", "precision", "words/s", "script's", "ours ÷ script", "MiB"]
    report.table("Training", columns)
    corpus, v = text_of(sizes, 800 * sizes.updates), sizes.words
    for name, size in (("rnnlm", sizes.hidden), ("attention", sizes.hidden // 2)):
        config = Config(name, v, size, size, tied=False)
        plain: type[Any] = training.PlainLM
        if name == "attention":
            config, plain = replace(config, source_words=v), training.Adaptive
        exact, strong = training.exact_softmax(name), training.strong(name)
        for label, settings in (("as the script's", exact), ("strong", strong)):
            for dtype in PRECISIONS:
                if report.late(name, label, dtype):
                    return
                half = "bfloat16" if dtype == "bfloat16" else "float32"
                own = replace(settings, precision=half)
                with precision("tf32" if dtype == "tf32" else "float32", device):
                    ours, held = measured(
                        lambda c=config, s=own: words_a_second(
                            training.our_updates(corpus, c, s, device), sizes.updates
                        ),
                        device,
                    )
                theirs = None
                if settings is exact:
                    with precision(dtype, device):
                        script = plain(v, size).to(device)
                        updates = training.plain_updates(corpus, script, exact)
                        theirs, _ = measured(
                            lambda u=updates: words_a_second(u, sizes.updates), device
                        )
                rates = [f"{rate:,.0f}" if rate else "–" for rate in (ours, theirs)]
                ratio = f"{ours / theirs:.2f}" if ours and theirs else "–"
                report.row(name, label, dtype, *rates, ratio, held)


def words_a_second(updates: Iterator[int], number: int) -> float:
    """Words a second of the updates after the first three."""
    sum(islice(updates, 3))
    synchronise()
    began = perf_counter()
    words = sum(islice(updates, number))
    synchronise()
    return words / (perf_counter() - began)


@contextmanager
def lists_of_test(data: Path | None, sizes: Sizes) -> Iterator[tuple[list[str], Vocabulary]]:
    """Options for `decode` of the lists and weights of `test`, and words for a model."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if data is None:
            generate.generate(folder, *sizes.test, 3, 1)
            kbest, docs = folder / "kbest.gz", folder / "docids"
            weights = json.loads((folder / "weights.json").read_text())
            words = [w.encode() for w in generate.vocabulary(np.random.default_rng(0))]
        else:
            kbest, docs = (data / f"tvsub-zh-en/test.{x}" for x in ("nbest.xz", "docids"))
            text = Text.read(data, "tvsub test", 2000)
            counts = Counter(word for of_list in text.lists for c in of_list for word in c)
            words = [word for word, _ in counts.most_common()]
            weights = {"LM0": 0.1, "TranslationModel0": [0.05] * 4, "WordPenalty0": -0.2}
            weights |= {"Distortion0": 0.05, "PhrasePenalty0": 0.1}
            weights |= {"LexicalReordering0": [0.05] * 6}
        (folder / "weights.json").write_text(json.dumps({**weights, "LM1": 0.2, "LM1oov": 0.0}))
        options = ["--kbest", str(kbest), "--docs", str(docs)]
        options += ["--weights", str(folder / "weights.json"), "--out", str(folder / "out")]
        yield options, Vocabulary(tuple(words[: sizes.words - 3]))


def decoding(report: Report, data: Path | None, sizes: Sizes, device: torch.device) -> None:
    """Seconds of `decode` of all of `test` with `codclm`, start and reading included."""
    columns = ["precision", "sentences", "seconds", "sentences/s", "other choices than float32"]
    report.table("decode, codclm, all of test", columns)
    with lists_of_test(data, sizes) as (options, vocabulary):
        folder = Path(options[-1]).parent
        h = sizes.hidden
        model = seeded(Config("codclm", len(vocabulary), h, h, "lstm", tied=True))
        save_model(folder / "lm", model, vocabulary, {"oov_rate": 0.1})
        first: list[int] | None = None
        for dtype in PRECISIONS:
            if report.late(dtype):
                return
            command = [sys.executable, "-m", "rerank", "decode", *options, "--no-cache", "--quiet"]
            command += ["--lm", f"LM1={folder / 'lm'}", "--device", str(device), "--dtype", dtype]
            command += ["--summary", str(folder / "s.json")]
            began = perf_counter()
            most = max(0.0, report.end - began) + 40
            try:
                run = subprocess.run(command, capture_output=True, text=True, timeout=most)
            except subprocess.TimeoutExpired:
                report.row(dtype, f"not done after {most:.0f} s")
                return
            seconds = perf_counter() - began
            if run.returncode:
                report.row(dtype, run.stderr.strip().splitlines()[-1])
                continue
            documents = json.loads((folder / "s.json").read_text())["documents"]
            chosen = [choice for document in documents for choice in document["choices"]]
            first = first or chosen
            other = sum(a != b for a, b in zip(chosen, first, strict=True))
            rate = f"{len(chosen) / seconds:,.0f}"
            report.row(dtype, f"{len(chosen):,}", f"{seconds:.1f}", rate, other)


def kernels(
    report: Report, lists: Set, sizes: Sizes, device: torch.device, cases: Sequence[str]
) -> None:
    """Where the time of scoring goes: seconds in all, of the device, and of its longest kernels.

    On a CPU, of the calling thread alone.
    """
    cuda = device.type == "cuda"
    of_device = torch.autograd.DeviceType.CUDA if cuda else torch.autograd.DeviceType.CPU
    for name, dtype in product(cases, PRECISIONS):
        report.table(f"{name}, {dtype}", ["seconds", "kernel"])
        if report.late():
            return
        try:
            case = CASES[name](sizes)
        except ImportError as fault:
            report.row("–", f"not measured: {fault}")
            continue
        run = case.ours(device, dtype, lists.head(sizes.sentences[case.name]))
        seconds, _ = fastest(run)
        with torch.profiler.profile() as profile:
            run()
            synchronise()
        events = [one for one in profile.key_averages() if one.device_type == of_device]
        times = "self_device_time_total" if cuda else "self_cpu_time_total"
        result = {event.key: getattr(event, times) / 1e6 for event in events}
        report.row(f"{seconds:.6f}", "all, by the clock")
        report.row(f"{sum(result.values()):.6f}", "all kernels")
        for key in sorted(result, key=lambda key: -result[key])[:15]:
            report.row(f"{result[key]:.6f}", f"`{key[:90]}`")


CASES: dict[str, Callable[[Sizes], Case]] = {
    "rnnlm": partial(word_case, "rnnlm"),
    "codclm": partial(word_case, "codclm"),
    "ccdclm 8": partial(word_case, "ccdclm", width=8),
    "ccdclm 64": partial(word_case, "ccdclm", width=64),
    "attention": attention_case,
    "gpt2": causal_case,
}
PARTS = ("tests", "scoring", "decode", "training")
ASKED = ("kernels",)  # printed if asked for


@click.command()
@click.option("--device", default="cuda", show_default=True)
@click.option("--data", type=click.Path(exists=True, path_type=Path), help="Folder of tvsub-zh-en.")
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS + ASKED), default=PARTS)
@click.option(
    "--case",
    "cases",
    multiple=True,
    type=click.Choice(list(CASES)),
    default=list(CASES),
    help="Rows of scoring, or what kernels profiles; repeatable.",
)
@click.option("--minutes", default=9.0, show_default=True, help="No row begins after these.")
@click.option("--quick", is_flag=True, help="Tiny sizes: whether all of it runs.")
def main(
    device: str,
    data: Path | None,
    parts: tuple[str, ...],
    cases: tuple[str, ...],
    minutes: float,
    quick: bool,
) -> None:
    """Print the tables of all parts but kernels, or of some."""
    place, sizes = torch.device(device), QUICK if quick else REAL
    if place.type == "cuda" and not torch.cuda.is_available():
        raise click.UsageError(
            "there is no CUDA device here: --device cpu --quick tries the script"
        )
    if quick:  # threads that wait for each other take longer than so little work
        torch.set_num_threads(1)
        os.environ["OMP_NUM_THREADS"] = "1"
    report = Report(minutes)
    free = f"; {torch.cuda.mem_get_info(place)[0] >> 30} GiB free" if place.type == "cuda" else ""
    print(f"{machine(place)}{free}; random weights, {sizes.hidden} units, {sizes.words} words")
    most = max(sizes.sentences.values())
    if data is None:
        lists = made_up(most, sizes.words)
    else:
        text = Text.read(data, "tvsub test", most)
        lists = text.encoded(text.vocabulary(sizes.words))
    made: dict[str, Callable[[], None]] = {
        "tests": lambda: tests(place, quick),
        "scoring": lambda: scoring(report, lists, sizes, place, cases),
        "decode": lambda: decoding(report, data, sizes, place),
        "training": lambda: trainings(report, sizes, place),
        "kernels": lambda: kernels(report, lists, sizes, place, cases),
    }
    for part in parts:
        made[part]()


if __name__ == "__main__":
    main()
