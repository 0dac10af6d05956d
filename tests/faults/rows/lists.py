"""Faults of k-best lists of each format, of contrastive sets, and of what is asked of lists."""

import json
import re
from itertools import count

from support.faults import PASTED, Change, Changes, Fault, Model, line, replaced
from support.world import DECODE

JSONL = '{"candidates": [{"text": "a", "features": {"lp": 1}}]}\n'
SOCKEYE = '{"sentence_id": 1, "translation": "x", "score": 1}\n'
CDEC = "0 ||| a lamp ||| LM=-3.5 Phrase_0=1 ||| -2\n0 ||| lamp ||| LM=-4 Glue=2 ||| -3\n"
FAIRSEQ = "S-0\tx\nH-0\t-1\ta\nP-0\t-1\n"
SET = '{"context": [], "right": "it burns", "wrong": "he burns"}\n'
CONVERT = "convert --kbest list --to jsonl"
CLIPPED = f"{CONVERT} --clip-inf 1e4"
CONTRAST = "lm-eval contrastive --lm lm set.jsonl"
MESSY = "0 ||| a ||| A= 1 B= 2 3 ||| -5\n"
NO_TEXTS: tuple[tuple[str, str, Changes | str | None], ...] = (
    (MESSY + MESSY, "lines with ids, as '0 .* leave out --kbest-format", CONVERT),
    ('{"candidates": ["a"]}\n' * 2, "JSON with [.]candidates.*; leave out --kbest-format", CONVERT),
    ('"a"\n"b"\n', "JSON with texts in quotes; write the texts alone", {"list": "a\nb\n"}),
    ("0\ta\n0\tb\n1\tc\n1\td\n", "ids before them; write 'id", None),
)
SENTENCES = ("lamp burning", "dogs barking", "cold rivers", "moon rising", "old friend", "tall house", "wild storm", "five birds", "sweet music")
ALIKE = [f"{sentence}{end}" for sentence in SENTENCES for end in ("", " now")]
_numbers = count(1)


def of_list(
    name: str, wrong: str, message: str, cure: str | None, *, options: str = "", exit_code: int = 3
) -> Fault:
    """A list that `convert` refuses; cure: the list, or the command, that it takes."""
    sound = cure if cure is None or cure.startswith("convert") else {"list": cure}
    command = f"{CONVERT} {options}" if options else CONVERT
    return Fault(f"--{name}", command, message, {"list": wrong}, exit_code, sound)


def numbered(
    name: str, sound: str, faults: list[tuple[str, str, str]], options: str = ""
) -> list[Fault]:
    """A fault for each replacement (old, new, message) in a sound list of one line or more."""
    return [
        of_list(f"{name}-{n}", sound.replace(old, new), message, sound, options=options)
        for n, (old, new, message) in enumerate(faults, 1)
    ]


def contrastive(wrong: str, message: str) -> Fault:
    """A set whose second item is refused; no model is read before it."""
    return Fault(
        f"--contrastive-{next(_numbers)}", CONTRAST, rf"set\.jsonl:2: .*{message}",
        {"set.jsonl": SET + wrong + "\n"},
    )  # fmt: skip


def in_flat(name: str, options: str, message: str, cure: str | None = None, code: int = 3) -> Fault:
    """Options of `convert` that do not fit a flat list of two sentences with two lines each."""
    numbers = {"s": "1 2\n" * 4, "short": "1\n" * 3, "long": "1\n" * 5, "word": "1 x\n" * 4}
    files: Changes = {"list": "a\nb\nc\nd\n", **numbers, "ragged": "1\n2 3\n4\n5\n"}
    command = f"convert --kbest list --kbest-format {options} --to jsonl"
    fixed = None if cure is None else f"convert --kbest list --kbest-format {cure} --to jsonl"
    return Fault(f"--flat-{name}", command, message, files, code, fixed)


def looks_like(name: str, content: str, message: str, cure: str | None = None) -> Fault:
    """A file that is no list, and what it may be; cure: a command, or what its jq would write."""
    sound = cure if cure is None or cure.startswith("convert") else {"list": cure}
    return Fault(f"22-looks-like-{name}", CONVERT, message, {"list": content}, cure=sound)


def asked(
    options: str, message: str, cure: str, code: int = 2, change: Change | None = None
) -> Fault:
    """What `convert` cannot write of the sound list."""
    return Fault(
        f"--convert-{next(_numbers)}",
        f"convert --kbest dev.kbest {options} --out new",
        message,
        {"dev.kbest": change} if change else {},
        code,
        f"convert --kbest dev.kbest {cure} --out new",
    )


FAULTS = [
    *numbered("fairseq", FAIRSEQ,
        [("P-0", "P-1", "list:3: expected H-0? ?.*before|list:3: expected H-1 before"), ("H-0\t-1\ta\nP-0", "P-0\t-1\nH-0", "list:2: expected H-0 before"),
        ("H-0\t-1", "H-0\tnan", "list:2: expected a (finite|decimal) number"), ("H-0\t-1\ta", "H-0\t-1", "list:2: expected H-ID, score and text"), ("H-0",
        f"H-{'9' * 5000}", "list:2: expected a sentence id"), ("H-0", "S-0\ty\nH-0", "list:2: expected one source of S-0"), (FAIRSEQ, FAIRSEQ + "P-0\t-2\n",
        "list:4: expected one P- line after H-0.*H- line missing")]),
    of_list("fairseq-infinite", FAIRSEQ.replace("-1", "-inf"), "list:2: .*--clip-inf", CLIPPED),
    *numbered("sockeye", SOCKEYE, [
        ('"score": 1', '"score": "1"', "list:1: expected numbers"),
        ('"score": 1', '"score": []', "list:1: expected a score of each"),
        ('"x"', "1", "list:1: expected a text"),
        ('"score"', '"translations": ["x"], "scores": [[1], [2]], "score"',
         "list:1: expected a score for each of 1"),
        ('"score"', '"translations": "x", "scores": 1, "score"', "list:1: expected lists"),
        ('"x"', '"\\ud800"', "list:1: .*surrogate"),
        ('"score": 1', f'"score": 1{"0" * 350}', "list:1: expected a finite number"),
        ("1}", "1} {}", "list:1: expected one JSON object.*Extra data.*write one object on each line"),
        ('"', "'", "list:1: .*double quotes"),
        ("1,", "1,\n", "list:1: expected one JSON object"),
    ], "--kbest-format sockeye"),
    of_list("sockeye-infinite", SOCKEYE.replace(": 1}", ": Infinity}"), "list:1: .*--clip-inf", CLIPPED),
    *numbered("jsonl", JSONL, [
        ("1}", "NaN}", "list:1: expected a finite number for lp"),
        ('"lp"', '"\\udc00"', r"list:1: expected a feature name with letters or digits, found '.*udc00"),
        ("1}", "1e400}", "list:1: expected a finite number for lp"),
        ("1}", "true}", "list:1: expected a number for lp"),
        ("lp", "_", "list:1: expected a feature name with letters"),
        ('"lp": 1', '"l_p": 1, "lp": 2', "list:1: expected features that differ"),
        (JSONL, '{"candidates": 3}', "list:1: expected a list"),
        (JSONL, '{"words": "a"}', "list:1: expected a key 'candidates'"),
        (JSONL, '{"candidates": [3]}', "list:1: expected a candidate with a text"),
        ('"text": "a"', '"score": 3', "list:1: expected a candidate's key 'text'"),
        (JSONL, '{"candidates": ["a"], "scores": [1, 2]}', "list:1: expected a list of 1 numbers"),
        ('"a"', '"a", "score": "x"', "list:1: expected a number for"),
        ('{"cand', '{"id": -1, "cand', "list:1: expected a number from 0"),
        ('{"lp": 1}', "[1]", "list:1: expected an object at"),
        ('"features"', '"sparse": {"a_b": "x"}, "features"', "list:1: expected a number"),
        (JSONL, JSONL + JSONL.replace("lp", "lq"), "list:2: expected 1 feature values as the firs"),
        ('"features"', '"sparse": [1], "features"', "list:1: expected an object at 'sparse', found .1"),
        ('"a"', r'"a\u0000"', "list:1: expected a text for a candidate, found a NUL character"),
        (JSONL, "[1]\n", r"list:1: expected a JSON object, found '\[1\]'"),
        (JSONL, '{"id": 0, "src": "x", "hyps": ["a"]}\n{"id": 0, "src": "y", "hyps": ["b"]}', "list:2: expected one source for each id"),
        (JSONL, '{"id": 0, "ref": "x", "hyps": ["a"]}\n{"id": 0, "ref": "y", "hyps": ["b"]}', "list:2: expected one reference for each id"),
        (JSONL, '{"id": 0, "hyps": ["a"]}\n{"hyps": ["b"]}', "list:2: expected an id at 'id' as other objects"),
        (JSONL, '{"response": "a", "done": false}', "list:1: .*a piece of a streamed one"),
    ], "--kbest-format jsonl"),
    Fault("50-other-documents-than-those-of-the-list", "check --kbest list --docs docs", "docs:2: expected the documents that list itself has",
        {"list": '{"doc": "a", "id": 0, "hyps": ["x"]}\n{"doc": "b", "id": 0, "hyps": ["x"]}\n', "docs": "a\na\nb\n"}, cure="check --kbest list"),
    Fault("50-documents-that-join-those-of-the-list", "check --kbest list --docs docs", "docs:2: document of --docs that joins documents which",
        {"list": '{"doc": "a", "hyps": ["x"]}\n{"doc": "b", "hyps": ["x"]}\n', "docs": "c\nc\n"}, 0, {"docs": "c\nd\n"}),
    of_list("jsonl-infinite", JSONL.replace("1}", "-Infinity}"), "list:1: .*--clip-inf", CLIPPED),
    *numbered("cdec", CDEC,
        [("-4 Glue=2 ||| -3", "-4 Glue=2 ||| -3\n1 ||| a", "list:3: expected at least 3 columns of"), ("LM=-4", "LM=-4 LM=2",
        "list:2: expected one value of LM"), ("LM=-4", "LM=x", "list:2: expected a decimal number for LM"), ("Glue=2", "a=b=2",
        "list:2: expected the features LM, Phrase_0, a, b, found 'a=b'")], "--kbest-format cdec"),
    *numbered("nematus", "0 ||| a ||| 1\n0 ||| b ||| 2\n",
        [("0 ||| b ||| 2", "0 ||| b", r"list:2: expected 'id \|\|\| text \|\|\| cost cost'"), ("b ||| 2", "b ||| ",
        "list:2: expected costs in the last column, found none"), ("b ||| 2", "b ||| F0= 1", "list:2: expected a decimal number for a cost, found 'F0='"),
        ("b ||| 2", "b ||| 1 2", "list:2: expected 1 feature values")], "--kbest-format nematus"),
    *numbered("mbr-nmt", "NC=2\na\nb\n", [("b\n", "b\nmore\n", "list:4: expected NC=n"), ("NC=2", "NC=3", "list:3: expected 1 more candidates")]),
    *numbered("mlm", '{"a": {"hyp_1": {"score": 1, "text": "x"}}}', [
        ('{"hyp_1": {"score": 1, "text": "x"}}', "3", "list:1: expected an object at 'a'"),
        (', "text": "x"', "", "list:1: expected a score and a text at 'a' 'hyp_1'"),
        ('"score": 1', '"score": "x"', "list:1: expected a number for score"),
        (': {"score": 1, "text": "x"}}}', "", "list:1: expected one JSON object"),
    ], "--kbest-format mlm-scoring"),
    *numbered("moses", MESSY, [
        (MESSY, "a b c\n", "list:1: expected 'id .* found 1 column: 'a b c'"),
        ("A= 1 B= 2 3 ||| -5", "junk", "list:1: .*as Moses and Marian write it, found 3 columns"),
        ("a |||", "a ||| b |||", "list:1: expected features or an alignment, found ' b '"),
        ("3 ", "3 x_y= ", "list:1: expected a number after 'x_y='"),
        ("3 ", "3 = 2 ", "list:1: expected a feature name before '='"),
        (MESSY, MESSY + MESSY.replace("3", "3 x_y= 1 x_y= 1"), "list:2: .*sparse feature x_y, fou"),
        (MESSY, MESSY + MESSY.replace("-5", "nan"), "list:2: .*number for the total, found 'nan'"),
        (MESSY, MESSY + MESSY.replace("-5", "1 ||| A= 1 B= 2 3 ||| 0"), "list:2: expected 4 colum"),
        (MESSY, MESSY.replace("0", "9" * 5000, 1), r"list:1: .*below 2\^31"),
    ], "--kbest-format moses"),
    # Lists whose numbers are in another file
    in_flat("lines", "flat:3", r"list:4: expected 3 lines for each sentence, found 4 lines, 1 of t", "flat:2"),
    in_flat("scores-few", "flat:2 --kbest-scores short", "short:3: .*found 3 lines and more in lis", "flat:2 --kbest-scores s"),
    in_flat("scores-ragged", "flat:2 --kbest-scores ragged", "list:2: expected 1 feature values"),
    in_flat("zero", "flat:0", "expected a number of lines, as flat:100", "flat:2", 2),
    in_flat("number", "moses:2", "moses takes no number; give moses alone", None, 2),
    in_flat("portage", "portage:2", "--kbest-scores FILE", "portage:2 --kbest-scores s", 2),
    in_flat("scores-of-tabs", "tabs --kbest-scores s", "--kbest-scores: .*flat:K", "tabs", 2),
    # Files that are no lists
    looks_like("systems", "<dataset id='x'>\n", "SGML or XML.*--systems NAME=FILE#SYSTEM"),
    looks_like("scores", "1.5\t-2\n", "--kbest-format portage:K"),
    looks_like("text", "the text\n", "looks like plain text.*portage:K in place of flat:K", f"{CONVERT} --kbest-format flat:1"),
    looks_like("tabs", "a\tthe\n", "--kbest-format tabs", f"{CONVERT} --kbest-format tabs"),
    *(looks_like(name, text, message, f"{CONVERT} --kbest-format {cure}")
        for name, text, message, cure in (("scores-behind", "a b\t-1.5\n-2\t-1\n", "numbers beside each hypothesis: .* flat:K --to", "flat:2"), ("scores-first",
        "-1.5 ||| a b\n-2 ||| a\n", "beside each hypothesis: .* flat:K --to", "flat:1"), ("pairs", "a\t-1\tb\t-2\n", "with TABs.*--kbest-format tabs",
        "tabs"))),
    *(looks_like(f"shape-{n}", text, message, cure) for n, (text, message, cure) in enumerate((
        ("0 ||| a\n0 ||| b\n", "a list without features: write ' [|]{3}' at the end", "0 ||| a |||\n0 ||| b |||\n"),
        ("0\ta\t-1\n1\tb\t-2\n", "a table of ids, texts and scores: write its rows as", "0 ||| a ||| -1\n1 ||| b ||| -2\n"),
        ("0,a,-1\n0,b,-2\n1,c,-2\n", "a table of ids, texts and scores: write its rows as", "0 ||| a ||| -1\n0 ||| b ||| -2\n1 ||| c ||| -2\n"),
        ("0 ||| a ||| 2.6 ||| x ||| 1 ||| 1\n0.1 0.9\n", "list:1: expected features or an alignment, found ' 2.6 '; numbers stand after", "0 ||| a ||| 2.6\n"),
        ("0 ||| -1 ||| a\n0 ||| -2 ||| b\n", "found 3 columns: '0", "0 ||| a ||| -1\n0 ||| b ||| -2\n"),
        ("0 ||| -1 ||| a ||| A= 1\n", "found ' a '; numbers stand after the text", "0 ||| a ||| A= 1 ||| -1\n"),
        ("T-0\tx\nD-0\t-1\ta\n", "output of fairseq without its H- lines: .*write H- for D-", "T-0\tx\nH-0\t-1\ta\n"),
        ("H-0\ta\nH-1\tb c\n", "expected H-ID, score and text.*; give the output of fairseq whole", "H-0\t-1\ta\nH-1\t-1\tb c\n"),
        ("D-0\t-1\ta\nH-0\t-1\ta\nS-0\tx\n", "expected H-0 before its other lines.* if it is sorted, the H- lines alone", "H-0\t-1\ta\n"),
        (MESSY + "Total time: 1s\n", "expected 4 columns as on the first line, found 'Total time: 1s'; leave out", MESSY),
        *((MESSY.replace(" ||| ", mark).replace(" 3 ||| ", f" 3{mark}"), "a list with other marks than [|]{3}: write", MESSY) for mark in (" | ", " || ", " \u2502 ", " # ")),
        ("S-0 x\nH-0 -1 a b\nP-0 -1 -2\n", "output of fairseq whose TABs became blanks: write a TAB", "S-0\tx\nH-0\t-1\ta b\nP-0\t-1 -2\n"),
        ("[2021-01-01 00:00:00] Best translation 0 : a\n" + MESSY, "a list among other lines, as of logging: leave these out", MESSY),
        ("{'candidates': ['a']}\n", "what Python prints: write JSON with json.dumps", '{"candidates": ["a"]}\n'),
        *((MESSY.replace(" A= 1 B= 2 3 ", field), f"{message}; features are written as 'LM0=", MESSY) for field, message in (
            ("A = 1 B : 2", "expected features or an alignment, found 'A = 1 B : 2'"), ("{'A': 1, 'B': 2}", "expected features, found .*"),
            ("[1, -2]", "found '.1, -2.'"), ("A= 1,5 B= 2", "expected features, found 'A= 1,5 B= 2'"), ("A=1;B=2", "found .A=1;B=2."))),
        *((MESSY.replace("0 |||", f"{id_} |||"), f"expected a sentence id .digits 0-9., found '{id_}'; number", MESSY) for id_ in ("0.0", "s-1"))))),
    *(Fault(f"--read-as-words-{n}", f"{CONVERT} --kbest-format flat:{k}", message, {"list": text}, 0) for n, (text, k, message) in enumerate((
        ("u1 a\nu2 a\nu3 b\n", 3, "id on each line, as 'u1' at its start"),
        ("a (u-1)\na (u-2)\nb (u-3)\n", 3, r"id on each line, as '.u-1.' at its end"),
        ("-0.5 a\n-1 a\n-1.5 b\n", 3, "number on each line, as '-0.5' at its start.*write a TAB between"),
        ("a (-0.5)\nb (-1)\nc (-1.5)\n", 3, "number on each line, as '.-0.5.' at its end"),
        ("1. a\n2. b\n" * 3, 2, "id on each line, as '1[.]' at its start"),
        ("a lamp\tNone\n" * 3, 3, "2 TAB-separated columns on each line, as 'None' in one.*give the texts alone"),
        ("41% ||| a lamp\n" * 3, 3, "2 .*-separated columns on each line, as '41%' in one")))),
    *(Fault(f"--no-texts-{n}", f"{CONVERT} --kbest-format flat:2", f"list:1: expected texts, found {message}", {"list": text}, cure=cure)
        for n, (text, message, cure) in enumerate(NO_TEXTS)),
    looks_like("heading", "id\thyp\tscore\n0\ta\t-1\n1\tb\t-2\n", "it looks like a heading above a table of ids, .*, without the heading",
        "0 ||| a ||| -1\n1 ||| b ||| -2\n"),
    looks_like("columns", "a\t1\t2\tb\n", "!tabs --to"),
    looks_like("utterances", "u1-1 a\nu1-2 a\nu2-1 b\n", "flat:K.*id on each line, as 'u1-1' at its start"),
    *(Fault(f"--unlike-{n}", f"{CONVERT} --kbest-format {form}", f"1 x candidates of a sentence that are no more alike .*; is {form[5:]} the number",
        {"list": text}, 0, f"{CONVERT} --kbest-format flat:2")
        for n, (text, form) in enumerate((("".join(f"{x}\n" for x in ALIKE[::2] + ALIKE[1::2]), "flat:2"), ("".join(f"{x}\n" for x in ALIKE), "flat:3")))),
    *(Fault(f"--alike-{n}", f"{CONVERT} --kbest-format flat:{n}", "!no more alike",
        {"list": "".join("\n".join(pair) + "\n" * (n - 1) for pair in zip(ALIKE[::2], ALIKE[1::2], strict=True))}, 0) for n in (2, 3)),
    Fault("--number-in-tabs", f"{CONVERT} --kbest-format tabs", "1 x number between TABs", {"list": "a\tb\t3\nc\td\n"}, 0),
    *(Fault(f"--numbers-in-tabs-{n}", f"{CONVERT} --kbest-format tabs", "between TABs, .* a column of numbers", {"list": one}, 3, {"list": "a\tb\nc\n"})
        for n, one in enumerate(("1\ta\tb\n2\tc\td\n", "a\t1\tb\nc\t2\n", "a\tb\t-1\nc\td\te\t2\n"))),
    Fault("--tab-in-moses", CONVERT, "1 x TAB in a hypothesis", {"list": "0 ||| a\tb ||| A= 1\n0\t|||\ta\t||| A= 1\n"}, 0),
    Fault("--columns-differ", f"{CONVERT} --kbest-format flat:1", "list:201: expected 2 columns of each", {"list": "a\t-1\n" * 200 + "c\n"}),
    looks_like("key", '{"a": 1}\n', 'JSON without candidates at its keys a: write a line {"candidates": [^`]*; formats'),
    *(looks_like(f"json-{n}", f"{one}\n", r'JSON.*: write a line {"candidates"', '{"candidates": ["a", "b"]}\n') for n, one in enumerate((
        '{"0": ["a", "b"], "1": ["c"]}', '{"all": [{"id": 0, "hypotheses": ["a"]}]}', '{"u0": {"hyps": ["a"]}, "u1": {"hyps": ["b"]}}', '{"n": "a b", "score": -1}',
        '[{"candidates": ["a", "b"]}]', '[["a", "b"], ["c"]]', '["a", "b"]', '["a",\n"b"]', '{\n"candidates": ["a"]}'))),
    of_list("key-of-text", '{"output": [{"rec_text": "a b", "score": -1}]}\n', "expected a candidate's key 'text'.*; write its text at this key",
        '{"output": [{"text": "a b", "score": -1}]}\n'),
    Fault("--second-run-of-fairseq", CONVERT, "1 x source that comes again, as of a second run.*list:4", {"list": FAIRSEQ * 2}, 0),
    looks_like("broken-json", '{"a" 1}\n', "looks like JSON: expected one JSON object.*Expecting ':'"),
    looks_like("extractor", "FEATURES_TXT_BEGIN_0 0 1 1 A_0 \n", "tune-moses"),
    looks_like("arpa", "\\data\\\n", "--ngram"),
    looks_like("late", "\n  \na b c\n" + MESSY, "list:3: expected a k-best list, found 'a b c'.*m"),
    # What convert is asked for
    asked("--to documents", "--no-docs one", "--to documents --no-docs one"),
    asked("--to moses --n-best 2", "--n-best: only --to documents", "--to moses"),
    asked("--to moses --docs-out d", "no document ids", "--to moses --docs dev.docs --docs-out d"),
    asked("--to moses --source-out d", "no sources", "--to moses"),
    asked("--to documents --no-docs one --n-best 2", "expected totals", "--to documents --no-docs one", 3, replaced(" ||| -4.8125", "")),
    asked("--to documents --no-docs one", "--escape moses", "--to moses", 3, line(2, "lamp", r"lamp \n it")),
    Fault("16-bars-for-moses", "convert --kbest list --kbest-format tabs --to moses",
        r"list:1: expected a text without \|\|\| .* found 'a \|\|\| b'; .* --escape moses", {"list": "a ||| b\tc\n"},
        cure="convert --kbest list --kbest-format tabs --to moses --escape moses"),
    # What the order of candidates says of their numbers
    *(Fault(f"--costs-{n}", "decode --kbest list --no-docs one --weights w.json --out -", rf"likely costs .*: {names}; give negative weights, first at list",
            {"list": "".join(f"{k // 2} ||| a{k} ||| {one.format(k + 1)}\n" for k in range(4)), "w.json": json.dumps(weights)}, 0)
      for n, (one, names, weights) in enumerate((
        ("A= {0} ||| {0}", "A, total", {"A": 1}), ("A= {0} B= -1", "A", {"A": 1, "B": 0}), ("A= -1 ||| {0}.5", "total", {"A": 1}), ("A= {0}e1", "A", {"A": 1})))),
    *(Fault(f"--no-costs-{n}", "check --kbest list --no-docs one", "!costs|largest", {"list": one}, 0) for n, one in enumerate((
        "0 ||| a ||| A= 1 B= -1 ||| -1\n0 ||| b ||| A= 2 B= -2 ||| -2\n1 ||| c ||| A= 1 B= -1 ||| -1\n1 ||| d ||| A= 3 B= -4 ||| -2\n",
        "0 ||| a ||| A= 1 B= -1\n0 ||| b ||| A= 2 B= -2\n0 ||| c ||| A= 3 B= -2\n", "0 ||| a ||| A= 1 ||| 1\n0 ||| b ||| A= 1 ||| 1\n",
        "0 ||| a ||| A= -1\n0 ||| b ||| A= -2\n1 ||| c ||| A= -2\n1 ||| d ||| A= -2\n"))),
    *(Fault(f"--not-best-{n}", f"first --kbest list {options}", rf"2 x first candidate whose {name} is not the largest, in 2 of 3 sentences; .*rerank decode "
            rf'--default-weight 0 with the weights {{"{name}": 1}}.*first at list:3', {"list": one, "w.json": f'{{"{name}": 1}}'}, 0,
            f"decode --kbest list {options} --no-docs each --default-weight 0 --weights w.json --out -")
      for n, (name, options, one) in enumerate((
        ("total", "", "0 ||| a ||| A= 1 ||| -1\n0 ||| b ||| A= 2 ||| -2\n1 ||| c ||| A= 1 ||| -2\n1 ||| d ||| A= 3 ||| -1\n2 ||| e ||| A= 1 ||| -4\n2 ||| f ||| A= 1 ||| -3\n"),
        ("A", "", "".join(f"{k // 2} ||| {k} ||| A= {a}\n" for k, a in enumerate((-1, -2, -2, -1, -4, -3)))),
        ("F0", "--kbest-format flat:2", "".join(f"a {k}\t{a}\n" for k, a in enumerate((5, -2, 0, 1, 4, 9.5))))))),
    Fault("--votes", "check --kbest list --kbest-format flat:2 --no-docs one", (r"!\d warning", r"duplicates +1,"), {"list": "a\na\n"}, 0),
    Fault("--unknown-word-penalty", "check --kbest list --no-docs one --weights w.json", (r"!\d warning", "totals +2 lower by Moses' penalty"),
        {"list": "0 ||| a ||| A= -1 ||| -101\n0 ||| b ||| A= -2.5 ||| -302.5\n0 ||| c ||| A= -1000 ||| -1000\n", "w.json": '{"A": 1}'}, 0),
    # Ids
    Fault("27-id-far-beyond", "first --kbest dev.kbest", r"dev\.kbest: .*found id 2147483647 in a list of 9 hypotheses; give --docs FILE",
        {"dev.kbest": line(9, "3 |||", "2147483647 |||")}),
    Fault("28-first-id-above-all", "first --kbest dev.kbest --first-id 7", r"dev\.kbest:1: expected ids from 7 on, found 0", cure="first --kbest dev.kbest"),
    Fault("48-json-document-resumes", CONVERT, "expected each document in one run of lines",
        {"list": "".join(f'{{"document": "{d}", "candidates": ["a"]}}\n' for d in "xyx")},
        cure={"list": "".join(f'{{"document": "{d}", "candidates": ["a"]}}\n' for d in "xxy")}),
    Fault("95-scores-of-the-list-s-own-name", f"{DECODE} --scores LM0=qe", "--scores LM0=…: dev.kbest already has a feature 'LM0'", {"qe": "1\n" * 9}, 2,
        "score --kbest dev.kbest --docs dev.docs --scores QE=qe"),
    # Contrastive sets
    *(contrastive(wrong, message) for wrong, message in (
        ("the lamp", "expected one JSON object, found 'the lamp': Expecting value at column 1"),
        (SET[:-1].replace("[]", "NaN"), "expected a list of sentences as 'context', found NaN; write"),
        (SET[:-1] + " {}", "expected one JSON object, .*: Extra data at column .*; write one object on each line"),
        ('{"id": 1, "id": 2}', "found the key 'id' twice in one object"),
        ('{"rigth": "a"}', "found the field \"rigth\"; did you mean 'right'.; rename or remove it"),
        (f'{{"{"x" * 10_000}": 1}}', "found the field .{,250}; there are: id"),
        ('{"right": "a", "wrong": "b"}', r"expected the field 'context', found none; give .* \[\]"),
        ('{"context": []}', "expected the field 'right', found none; a line is {.*}"),
        (SET[:-1].replace("[]", '"a b"'), "expected a list of sentences as 'context', found \"a b"),
        (SET[:-1].replace("[]", "[1]"), "expected a sentence as 'context', found 1"),
        (SET[:-1].replace("[]", '[" "]'), "expected a sentence as 'context', found no words"),
        (SET[:-1].replace('"he burns"', "[]"), "expected a sentence or several as 'wrong', found "),
        (SET[:-1].replace("he burns", "it  burns"), "expected 'wrong' to differ from 'right'; cor"),
        (SET[:-2] + ', "pronoun": 3}', "expected text as 'pronoun', found 3; write it in quotes"),
        (SET[:-2] + r', "pronoun": "\udfff"}', "found half a surrogate pair in 'pronoun'"),
        ("[" * 100_000, "expected a JSON object, found too deep a nesting"),
        (f'{{"id": {"9" * 5000}}}', "expected a JSON object, found a number of 5000 digits"),
        ("[1]", r"expected a JSON object, found '\[1\]'"),
    )),
    *(
        Fault(f"--contrastive-{name}", CONTRAST, rf"set\.jsonl:1: .*`jq -c '{re.escape(jq)}' set\.jsonl > ", {"set.jsonl": given, "lm": Model("rnnlm")}, cure=PASTED)
        for name, given, jq in (
            ("contrapro", '[{"ref segment": "it burns", "errors": [{"contrastive": "he burns"}]}]\n',
             '.[] | {context: [], right: ."ref segment", wrong: [.errors[]."contrastive"]}'),
            ("blimp", '{"sentence_good": "it burns", "sentence_bad": "he burns"}\n', "{context: [], right: .sentence_good, wrong: .sentence_bad}"),
            ("over-lines", '[\n{"context": [],\n"correct": "it burns", "incorrect": ["he burns"]}]\n',
             ".[] | {context: .context, right: .correct, wrong: .incorrect}"),
        )
    ),
    Fault("21-contrastive-blank-line", CONTRAST, (r"1 x blank line, skipped, first at set\.jsonl:2", r"set\.jsonl:3: expected a JSON object"),
        {"set.jsonl": SET + "\n[1]\n"}),
    Fault("20-empty-contrastive-set", CONTRAST, r"set\.jsonl:1: expected a JSON object per line", {"set.jsonl": ""}),
]  # fmt: skip
