"""Judges of stated strength: what a choice by them is worth to people, and how many questions.

    python recipes/studies/judges/run.py --data DATA [--seeds 20] [--only rating]

DATA holds `mqm-zh-en/` (this folder's README). A server on the loopback interface answers as a
judge would whose opinion is minus people's penalty of that segment and system, plus noise; half of
the variance of the noise is drawn for each pass. `strength` is Pearson's correlation of opinions,
of one pass, with people's among the systems of a segment, in the mean over segments; the noise is
as large as gives it. The product sees the answers alone. Rows are printed as Markdown, MQM of what
`rerank decode` chooses, smaller is better.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import tempfile
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from rerank.commands import cli

Floats = NDArray[np.float64]
STRENGTHS = (0.2, 0.35, 0.5, 0.7)
BIAS = 0.5  # standard deviations of the noise by which what is shown first seems better
WEIGHTS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
WEIGHED = "weights"  # in place of a row: ratings with other weights
ROWS = {  # keys of the judge, by name of the row
    "rating": "",
    "rating, 3 passes": "passes=3",
    "rating, top=3": "top=3",
    "rating, margin=2": "margin=2",
    "rating, top=3, margin=2": "top=3,margin=2",
    "grade": "form=grade",
    "errors": "form=errors",
    "errors, 3 passes, ranks": "form=errors,passes=3,mean=ranks",
    "ranking": "form=ranking",
    "ranking, 3 passes": "form=ranking,passes=3",
    "pair, top=4": "form=pair,top=4",
}


class People:
    """People's penalties (T, S) of the outputs of systems, and these."""

    def __init__(self, folder: Path) -> None:
        self.names = (folder / "mqm.columns").read_text().split()
        self.files = [folder / f"hyp.{name}.en" for name in self.names]
        self.penalties: Floats = np.loadtxt(folder / "mqm.tsv")
        self.docs, self.source = folder / "docids", folder / "src.zh"
        self.sources = lines_of(self.source)
        self.texts = [*zip(*map(lines_of, self.files), strict=True)]
        ids = lines_of(self.docs)
        self.documents = np.array([[*dict.fromkeys(ids)].index(name) for name in ids])

    def penalty(self, chosen: Sequence[str]) -> Floats:
        """Penalties (T,) of chosen outputs; equal outputs have their mean."""
        same = np.array(
            [[x == c for x in texts] for texts, c in zip(self.texts, chosen, strict=True)]
        )
        return np.asarray((self.penalties * same).sum(axis=1) / same.sum(axis=1))


def lines_of(path: Path) -> list[str]:
    """The lines of a file, without white space around them."""
    return [line.strip() for line in path.read_text().split("\n")[:-1]]


def strength(opinions: Floats, truth: Floats) -> float:
    """Mean correlation within segments."""
    both = [(x, y) for x, y in zip(opinions, truth, strict=True) if np.ptp(x) and np.ptp(y)]
    return float(np.mean([np.corrcoef(x, y)[0, 1] for x, y in both]))


def pooled(opinions: Floats, truth: Floats) -> float:
    """Correlation over all segments and systems."""
    return float(np.corrcoef(opinions.ravel(), truth.ravel())[0, 1])


def kendall(opinions: Floats, truth: Floats) -> float:
    """Mean of Kendall's τ-b within segments."""
    both = zip(opinions, truth, strict=True)
    return float(np.nanmean([kendalltau(x, y).statistic for x, y in both if np.ptp(y)]))


class Opinions(ThreadingHTTPServer):
    """A judge of a strength, with its own noise; asked: number of questions."""

    daemon_threads, request_queue_size = True, 128

    def __init__(self, people: People, wanted: float, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.people, self.seed, self.asked = people, seed, 0
        self.truth, self.own = -people.penalties, self._drawn(0)
        low, high = 0.01, 1000.0
        while high / low > 1.001:
            self.noise = (low * high) ** 0.5
            result = strength(self.of_pass(1), self.truth)
            low, high = (self.noise, high) if result > wanted else (low, self.noise)
        places = enumerate(zip(people.sources, people.texts, strict=True))
        self.places = {(s, x): (t, k) for t, (s, texts) in places for k, x in enumerate(texts)}
        self.spread = float(self.of_pass(1).std())
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def of_pass(self, number: int) -> Floats:
        """Opinions (T, S) of a pass."""
        return self.truth + self.noise * (self.own + self._drawn(number)) / 2**0.5

    def _drawn(self, number: int) -> Floats:
        """Noise (T, S) of a pass, 0 for what all passes share; equal texts have equal noise."""
        drawn = np.random.default_rng([self.seed, number]).normal(size=self.people.penalties.shape)
        for row, texts in zip(drawn, self.people.texts, strict=True):
            row[:] = row[[texts.index(text) for text in texts]]
        return drawn

    def opinion(self, source: str, text: str, salt: str) -> float:
        """The judge's opinion of an output, of one question."""
        t, k = self.places[source, text]
        drawn = int.from_bytes(hashlib.sha256(f"{self.seed} {salt} {text}".encode()).digest()[:8])
        once = float(np.random.default_rng(drawn).normal())
        return float(self.truth[t, k] + self.noise * (self.own[t, k] + once) / 2**0.5)

    def answer(self, request: dict[str, Any]) -> str:
        """The answer to a question."""
        question, salt = request["messages"][0]["content"], str(request.get("seed", 0))
        source = re.search(r"^Source:\n(.*)\n", question, re.M)
        one = re.search(r"^Translation to judge:\n(.*)\n", question, re.M)
        listed = re.findall(r"^Translation (\w+):\n(.*)\n", question, re.M)
        texts = [one[1]] if one else [text for _, text in listed]
        result = [self.opinion(source[1] if source else "", x, salt) for x in texts]
        result[0] += BIAS * self.noise * (len(result) > 1)
        if "Rank these" in question:
            ranked = sorted(zip(result, listed, strict=True), reverse=True)
            return json.dumps({"ranking": [label for _, (label, _) in ranked]})
        if "Which of the two" in question:
            return listed[int(np.argmax(result))][0]
        if "Find the errors" in question:
            return json.dumps({"errors": errors(-result[0], texts[0].split())})
        rating = 70 + 15 * (result[0] - self.truth.mean()) / self.spread
        rating = min(100, max(0, round(rating)))
        return "ABCDE"[min(4, (100 - rating) // 20)] if "Grade this" in question else str(rating)


def errors(penalty: float, words: Sequence[str]) -> list[dict[str, str]]:
    """Errors, their words made up, whose penalties sum to about this."""
    result, left = list[dict[str, str]](), max(0.0, penalty)
    for severity, weight in (("critical", 25.0), ("major", 5.0), ("minor", 1.0)):
        while left >= weight / 2 + 0.5 * (weight > 1):
            span = words[len(result) % max(1, len(words))] if words else ""
            result.append({"span": span, "category": "accuracy", "severity": severity})
            left -= weight
    return result


class _Handler(BaseHTTPRequestHandler):
    server: Opinions
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        choice = {"message": {"content": self.server.answer(request)}}
        body = json.dumps({"choices": [choice]}).encode()
        self.server.asked += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def chosen(people: People, work: Path, *more: str) -> list[str]:
    """What `rerank decode` chooses."""
    words = ["decode", "--source", str(people.source), "--docs", str(people.docs), "--no-cache"]
    for name, file in zip(people.names, people.files, strict=True):
        words += ["--systems", f"{re.sub('[^A-Za-z0-9]', '', name)}={file}"]
    out = work / "out"
    words += ["--out", str(out), "--quiet", *more]
    cli.main(words, standalone_mode=False)
    return lines_of(out)


def judged(people: People, server: Opinions, work: Path, keys: str, *more: str) -> list[str]:
    """What `rerank decode` chooses with this judge."""
    url = f"openai:http://127.0.0.1:{server.server_port}/v1,model=people,request={work}/plain.json"
    entry = f"j=judge:{url},parallel=4{',' * bool(keys)}{keys}"
    return chosen(people, work, "--scorer", entry, *more)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=[*ROWS, WEIGHED])
    options = parser.parse_args()
    people = People(options.data / "mqm-zh-en")
    means = people.penalties.mean(axis=0)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "plain.json").write_text('{"logprobs": null, "top_logprobs": null}')
        plain = people.penalty(chosen(people, work))
        print("| choice | questions | " + " | ".join(map(str, STRENGTHS)) + " |")
        print("|---|---|" + "---|" * len(STRENGTHS))
        for name, value in (
            ("mean system", means.mean()),
            ("best single system", means.min()),
            ("agreement", plain.mean()),
            ("the best of all", people.penalties.min(axis=1).mean()),
        ):
            print(f"| {name} | 0 |" + f" {value:.2f} |" * len(STRENGTHS))
        for name, of_pass in (
            ("pooled correlation", pooled),
            ("Kendall's τ in a segment", kendall),
        ):
            cells = []
            for wanted in STRENGTHS:
                with Opinions(people, wanted, 1) as server:
                    server.shutdown()
                cells.append(f" {of_pass(server.of_pass(1), server.truth):.2f} |")
            print(f"| {name} of opinions and people | |{''.join(cells)}")
        for n in (20, 60, len(people.sources)):
            cells = " | ".join(f"{value:.2f}" for value in of_engines(people, options.seeds, n))
            print(f"| the system of highest mean opinion | {n * len(means):,} | {cells} |")
        table = Table(people, work, options.seeds, plain)
        for name in options.only:
            if name == WEIGHED:
                table.show_weights()
            else:
                table.show(name, ROWS[name])


class Table:
    """Rows of choices by judges; plain: penalties (T,) of the choice by agreement alone."""

    def __init__(self, people: People, work: Path, seeds: int, plain: Floats) -> None:
        self.people, self.work, self.seeds, self.plain = people, work, seeds, plain

    def show(self, name: str, keys: str) -> None:
        """Print the row of a judge with these keys."""
        result, asked = [], 0
        for wanted in STRENGTHS:
            own = []
            for seed in range(self.seeds):
                with Opinions(self.people, wanted, seed) as server:
                    own.append(self.people.penalty(judged(self.people, server, self.work, keys)))
                    server.shutdown()
                    asked += server.asked
            result.append(np.array(own))
        self._print(name, asked / self.seeds / len(STRENGTHS), result)

    def show_weights(self) -> None:
        """Print rows of other weights of the rating: by it alone, and tuned on half the documents.

        By the features of one list, of which the weights of `decode` choose the same.
        """
        alone, tuned = list[Floats](), list[Floats]()
        for wanted in STRENGTHS:
            values = np.empty((self.seeds, len(WEIGHTS) + 1, len(self.plain)))
            for seed in range(self.seeds):
                with Opinions(self.people, wanted, seed) as server:
                    kbest = self.work / "kbest"
                    judged(self.people, server, self.work, "", "--kbest-out", str(kbest))
                    server.shutdown()
                for n, weight in enumerate((*WEIGHTS, None)):
                    values[seed, n] = self.people.penalty(best_of(kbest, weight))
            halves, own = self.people.documents % 2, np.empty_like(values[:, 0])
            for half in (0, 1):
                here = halves == half
                best = values[:, :-1, ~here].mean(axis=2).argmin(axis=1)
                own[:, here] = values[np.arange(self.seeds), best][:, here]
            alone.append(values[:, -1])
            tuned.append(own)
        n = sum(len({*texts}) for texts in self.people.texts)
        self._print("rating alone, without agreement", n, alone)
        self._print("rating, its weight tuned on the other half", n, tuned)

    def _print(self, name: str, asked: float, found: Sequence[Floats]) -> None:
        """A row: MQM, and its difference to agreement with 1.96 standard errors over documents."""
        cells = []
        for of_seeds in found:
            gain = of_seeds.mean(axis=0) - self.plain
            sums = np.bincount(self.people.documents, gain - gain.mean())
            error = 1.96 * float(np.sqrt((sums**2).sum())) / len(gain)
            cells.append(f"{of_seeds.mean():.2f} ({gain.mean():+.2f} ± {error:.2f})")
        print(f"| {name} | {asked:,.0f} | " + " | ".join(cells) + " |", flush=True)


def best_of(kbest: Path, weight: float | None) -> list[str]:
    """The best text of each list by agreement and a weight of the feature j; None: by j alone."""
    best: dict[str, tuple[float, str]] = {}
    for line in lines_of(kbest):
        number, text, features, _ = line.split(" ||| ")
        values = {k: float(v) for k, v in re.findall(r"(agreement|j)= (\S+)", features)}
        score = values["j"] if weight is None else values["agreement"] + weight * values["j"]
        if number not in best or score > best[number][0]:
            best[number] = score, text
    return [text for _, text in best.values()]


def of_engines(people: People, seeds: int, n: int) -> list[float]:
    """MQM of the system whose mean opinion of n drawn segments is best, for each strength."""
    result = []
    for wanted in STRENGTHS:
        own = []
        for seed in range(seeds):
            with Opinions(people, wanted, seed) as server:
                server.shutdown()
                drawn = np.random.default_rng(seed).permutation(len(people.sources))[:n]
                best = server.of_pass(1)[drawn].mean(axis=0).argmax()
                own.append(people.penalties[:, best].mean())
        result.append(float(np.mean(own)))
    return result


if __name__ == "__main__":
    main()
