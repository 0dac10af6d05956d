"""Made-up outputs of three engines, German → English, for the page TEN-MINUTES.md.

`python engines.py DIR` writes, for a set with which weights are tuned (`dev`) and another (`test`):

- `SET.de`, `SET.en`, `SET.docids`: letters of a few sentences, references, document ids
- `SET.a`, `SET.b`, `SET.c`: outputs of the engines, a line for each source line
- `SET.comet`: a made-up estimate of the quality of each of these lines, as `comet-score` prints it
- `test.llm`: a fourth output, of a model that translates whole letters and keeps no lines
- `test.nbest`: a k-best list of Moses for the same source lines
- `terms.tsv`: a glossary
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

LETTERS, SENTENCES = 12, 6
SLOTS = {  # German, English, and what engines write in its place
    "time": """
        Am Montag | On Monday | Mondays | At Monday
        Heute | Today | This day | Nowadays
        Jeden Morgen | Every morning | Each morning | All morning
        Nach der Arbeit | After work | After the work | Following his job
        Im Winter | In winter | In the winter | At winter""",
    "verb": """
        wäscht | washes | cleans | is washing
        sucht | looks for | seeks | searches
        verkauft | sells | is selling | sold
        zeichnet | draws | sketches | is painting
        vergisst | forgets | leaves | is forgetting""",
    "who": """
        der Fahrer | the driver | the chauffeur | the drivers
        die Nachbarin | the neighbour | the woman next door | the neighbouring
        mein Onkel | my uncle | the uncle | my ankle
        der Bäcker | the baker | the bakery | a baker
        die Lehrerin | the teacher | the lady teacher | the teaching""",
    "what": """
        den Lastwagen | the lorry | the truck | the load car
        die Quittung | the receipt | the bill | the quittance
        den Fahrschein | the ticket | the driving licence | the travel note
        die alte Karte | the old map | the old card | the ancient menu
        das Fahrrad | the bicycle | the bike | the driving wheel""",
    "where": """
        vor dem Rathaus | in front of the town hall | before the city hall | at the council house
        auf dem Bahnsteig | on the platform | at the railway station | on the rail path
        neben der Brücke | beside the bridge | next to the bridge | near of the bridge
        im Garten | in the garden | in the yard | into the garden
        hinter der Kirche | behind the church | back of the church | after the church""",
}
TERMS = """
Lastwagen\tlorry
Quittung\treceipt
Rathaus\ttown hall
Bahnsteig\tplatform
Fahrschein\tticket
"""
FAULTS = {"a": (0.3, 0.8), "b": (0.32, 0.3), "c": (0.36, 0.5)}  # share, and of the first kind

Phrase = list[str]


def phrases() -> dict[str, list[Phrase]]:
    """The phrases of each slot: German, English, two faults."""
    rows = {slot: text.strip().splitlines() for slot, text in SLOTS.items()}
    return {slot: [[*map(str.strip, row.split("|"))] for row in own] for slot, own in rows.items()}


def translation(phrases: list[Phrase], columns: list[int]) -> str:
    """An English sentence: of each phrase the column that is given for it."""
    time, verb, who, what, where = (
        phrase[column] for phrase, column in zip(phrases, columns, strict=True)
    )
    return f"{time} {who} {verb} {what} {where}."


def faulty(rng: random.Random, share: float, first: float) -> list[int]:
    """Columns of five phrases, a share of them faulty: more in some sentences than in others."""
    share *= rng.choice((0.3, 1.7))
    return [rng.choices((1, 2, 3), (1 - share, share * first, share - share * first))[0]
            for _ in SLOTS]  # fmt: skip


def candidates(rng: random.Random, chosen: list[Phrase]) -> list[str]:
    """Five different translations with scores, best first, as Moses writes them."""
    totals: dict[str, float] = {}
    while len(totals) < 5:
        columns = faulty(rng, 0.4, 0.5)
        faults = sum(column > 1 for column in columns)
        totals[translation(chosen, columns)] = rng.gauss(0, 1) - faults
    ranked = sorted(totals.items(), key=lambda one: -one[1])
    return [f"{text} ||| tm= {x:.3f} wp= {-len(text.split())} ||| {x:.3f}" for text, x in ranked]


def write(folder: Path, name: str, rng: random.Random) -> None:
    """Write the files of a set."""
    known = phrases()
    files: dict[str, list[str]] = {"llm": [], "nbest": []}
    comet: dict[str, list[float]] = {engine: [] for engine in FAULTS}
    for n in range(LETTERS * SENTENCES):
        chosen = [rng.choice(own) for own in known.values()]
        time, verb, who, what, where = (phrase[0] for phrase in chosen)
        lines = {"de": f"{time} {verb} {who} {what} {where}."}
        lines |= {"en": translation(chosen, [1] * 5), "docids": f"letter-{n // SENTENCES + 1}"}
        for engine, (share, first) in FAULTS.items():
            columns = faulty(rng, share, first)
            faults = sum(column > 1 for column in columns)
            lines[engine] = translation(chosen, columns)
            comet[engine].append(0.92 - 0.06 * faults + rng.gauss(0, 0.03))
        for file, line in lines.items():
            files.setdefault(file, []).append(f"{line}\n")
        # two or three sentences a line, a blank line between letters
        end = "\n\n" if n % SENTENCES == SENTENCES - 1 else "\n" if n % 5 == 2 else " "
        files["llm"].append(translation(chosen, faulty(rng, 0.2, 0.6)) + end)
        files["nbest"] += [f"{n} ||| {candidate}\n" for candidate in candidates(rng, chosen)]
    files["comet"] = [
        f"{name}.{engine}\tSegment {n}\tscore: {value:.4f}\n"
        for engine, values in comet.items()
        for n, value in enumerate(values)
    ]
    for file, own in files.items():
        if name == "test" or file not in ("llm", "nbest"):
            (folder / f"{name}.{file}").write_text("".join(own), encoding="utf-8")


def main() -> None:
    """Write all files into a new folder."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    rng = random.Random(1)
    for name in ("dev", "test"):
        write(folder, name, rng)
    (folder / "terms.tsv").write_text(TERMS.lstrip(), encoding="utf-8")


if __name__ == "__main__":
    main()
