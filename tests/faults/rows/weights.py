"""Faults of weights files: what is no weights file, and weights that do not fit a list."""

import json

from support.faults import Fault
from support.world import DECODE

READ = "weights w --to json"
SOUND = "LM0= 0.5\nTM0= 1 2\n"
JSON = """{
 "schema": 1,
 "weights": {
  "LM0": [
   0.5
  ],
  "TM: {0}": [
   0.25,
   1
  ]
 },
 "sparse": {"a_b": 1.5},
 "alpha": null,
 "provenance": {"note": ["x:", {"LM0": 1}]}
}
"""


def of_lines(name: str, wrong: str, message: str | tuple[str, str], cure: str | None = SOUND) -> Fault:
    """A file of lines that is refused."""
    return Fault(f"--{name}", READ, message, {"w": wrong}, cure=cure and {"w": cure})


def of_json(name: str, old: str, new: str, line: int, message: str) -> Fault:
    """A weights file of JSON with one fault, reported on its line, which was counted by hand."""
    assert JSON.count(old) == 1
    expected = rf"^rerank: w:{line}: expected JSON weights, found {message}"
    return Fault(f"68-{name}", READ, expected, {"w": JSON.replace(old, new)}, cure={"w": JSON})


def unwritable(
    name: str, to: str, label: str, message: str = "cannot hold the feature nam"
) -> Fault:
    """A weight whose name a format cannot hold; json, which the message names, can."""
    content = f'{{"schema": 1, "weights": {{"LM0": [1]}}, {label}}}'
    return Fault(f"--{name}", f"weights w --to {to}", message, {"w": content}, 2, READ)


FAULTS = [
    of_lines("no-weights", "", "w: expected weights.*found none"),
    of_lines("no-section", "[ttable-limit]\n20\n", r"section \[weight\], found none"),
    of_lines("weight-too-large", "[weight]\nLM0= 1e999\n", ("w:2: expected a finite number", "!clip-inf")),
    of_lines("weight-never-tuned", "[weight]\nTM0= UNTUNEABLECOMPONENT\n", "section .weight., fou"),
    of_lines("weight-without-number", "[weight]\nLM0=\n", "w:2: expected a number after 'LM0='"),
    of_lines("sparse-weight-twice", "a_b= 1\na_b= 2\n", "w:2: expected one weight of 'a_b', found"),
    of_lines("not-used", "not used\n", "w: expected weights, found 'not used', which mert-moses.p"),
    of_lines("alpha-negative", "# alpha: -1\n[weight]\nLM0= 1\n", "w:1: expected alpha above 0, f"),
    of_lines("alpha-twice", "# alpha: 1\n# alpha: 2\nA= 1\n", "w:2: expected one comment '# alpha"),
    of_lines("spread-zero", "# mbr_spread: 0\n[weight]\nLM0= 1\n", "w:1: expected mbr_spread abov"),
    of_lines("sparse-file-missing", "[x]\n1\n[weight-file]\nsparse.txt\n", r"w:4: expected the file of \[weight-file\], found"),
    Fault("--sparse-file-not-named", READ, r"1 x \[weight-file\] ignored; its weights are not read, first at w:1", {"w": "[weight-file]\n[weight]\nLM0= 1\n"},
        0, {"w": "[weight]\nLM0= 1\n"}),
    of_lines("extractor-features", "FEATURES_BIN_BEGIN_0 0 2 3 a b c\n", "w:1: expected text, found the binary form of Moses' extractor features; run"),
    # JSON
    of_json("infinite", "  1\n", "  1e999\n", 9, "'TM: .0.': inf; weights"),
    of_json("too-large", "  1\n", "  1e200\n", 9, r"'TM: .0.': 1e\+200; weights"),
    of_json("word-infinity", "0.5", "-Infinity", 5, "-Infinity"),
    of_json("digits", "0.5", "9" * 5000, 5, "a number of 5000 digits"),
    of_json("nesting", "0.5", "[" * 90_000 + "]" * 90_000, 5, "too deep a nesting"),
    of_json("key-twice", '"TM: {0}"', '"LM0"', 7, "the key 'LM0' twice in one object"),
    of_json("surrogate", '"TM: {0}"', '"\\udc00"', 7, r"half a surrogate pair in the key '.udc00'"),
    of_json("schema-2", '"schema": 1', '"schema": 2', 2, "schema 2; this version reads 1, try a n"),
    of_json("word", "1.5", '"x"', 12, "'a_b': 'x'; weights"),
    of_json("alpha-below-0", "null", "-1", 13, "alpha -1; alpha must be positive, or null"),
    of_json("spread-below-0", '"alpha": null', '"mbr_spread": -1', 13, "mbr_spread -1; mbr_spread"),
    of_json("alpha-list", "null", "[]", 13, r"'alpha': \[\]; weights"),
    of_json("key-unknown", '"alpha"', '"alhpa"', 13, "the key 'alhpa'; did you mean 'alpha'?"),
    of_json("sparse-list", '{"a_b": 1.5}', "[1]", 12, "no object at 'sparse'"),
    of_json("names-number", '{"a_b": 1.5}', '{}, "decoder_names": {"a": 1}', 12, "'a': 1; the nam"),
    *(Fault(f"68-other-{n}", READ, f"w:{line}: expected JSON{message}", {"w": content}, cure={"w": JSON})
        for n, (content, line, message) in enumerate((('{\n"weights": {"LM0": [1]}}', 2, " weights, found 'weights' without 'schema'; add"),
        ('{"LM0": 1,\n"TM0": {"a": 2}}', 2, " weights, found 'TM0': {'a': 2}; "), ('{"LM0": 1,\n"TM0": []}', 2, " weights, found no number for 'TM0'; write"),
        ('{"LM0": 1\n"TM0": 2}', 2, ": Expecting ',' delimiter"), ('{"LM0":' + "[" * 200_000, 1, ""), ('{"schema": 1}', 1, " weights, found none")))),
    # Names that a format cannot hold
    unwritable("sparse-name-without-underscore", "ini", '"sparse": {"ab": 1}'),
    unwritable("name-with-sign-for-dense", "dense", '"sparse": {"#x": 1}'),
    unwritable("name-with-tab-for-cdec", "cdec", '"sparse": {"a\\tb": 1}'),
    unwritable("empty-name-for-travatar", "travatar", '"sparse": {"": 1}'),
    unwritable("two-weights-of-one-name", "cdec", '"sparse": {"tm_pt_0": 2}, "decoder_names": ' '{"LM0": "tm_pt_0"}',
        "expected one weight of 'tm_pt_0', found two features"),
    Fault("--value-and-feature-of-one-name", "weights w --to travatar", "expected one weight of 'tm_0', found two features",
        {"w": '{"schema": 1, "weights": {"tm": [1, 2]}, "sparse": {"tm_0": 2}}'}, 2, READ),
    # moses.ini to write into
    Fault("--base-without-section", "weights w.ini --to moses-ini --base m.ini --out o.ini", r"m\.ini: expected a section \[weight\] to write into",
        {"m.ini": "LM0= 1\n"}, cure={"m.ini": "[weight]\nLM0= 1\n"}),
    Fault("--base-of-other-width", "weights w.ini --to moses-ini --base m.ini --out o.ini", r"m\.ini:2: expected 2 weights of TM0 as tuned, found 3; is it",
        {"m.ini": "[weight]\nTM0= 1 2 3\n"}, cure={"m.ini": "[weight]\nTM0= 1 2\n"}),
    Fault("--base-with-empty-weight", "weights w.ini --to moses-ini --base m.ini --out o.ini", r"m\.ini:2: expected 1 weights of LM0 .*, found 0",
        {"m.ini": "[weight]\nLM0= #1\n"}),
    Fault("--base-missing", "weights w.ini --to moses-ini --out o.ini", "--to moses-ini and --base: expected both or none", exit=2,
        cure="weights w.ini --to ini"),
    Fault("--weights-format", "weights w.ini --to jsn", "no weight format 'jsn'; did you mean jso", exit=2, cure="weights w.ini --to json"),
    Fault("--weights-suffix", "tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --out w.", "expected a weights file .json or .ini", exit=2),
    # Weights that do not fit a list
    Fault("66-name-near-another", DECODE.replace("w.ini", "w"), "w: .*found one of 'LM'; did you mean 'LM0'", {"w": "LM= 1\nTM0= 1 1\nWP0= 1\n"},
        cure={"w": "LM0= 1\nTM0= 1 1\nWP0= 1\n"}),
    Fault("66-feature-of-an-option", DECODE.replace("w.ini", "w"), r"w: .*found one of 'agreement'; add --agreement --scorer dc=document-cache, as in tuning",
        {"w": json.dumps({"schema": 1, "weights": {"LM0": [1], "TM0": [1, 1], "WP0": [1], "agreement": [1], "dc": [0.5]},
        "provenance": {"scorers": {"dc": {"entry": "document-cache"}}}})},
        cure=f"{DECODE.replace('w.ini', 'w')} --default-weight 0 --agreement --scorer dc=document-cache"),
    *(Fault(f"66-feature-of-an-option-{kind}", DECODE.replace("w.ini", "w"), rf"w: .*found one of 'a'; add {option}, as in tuning",
        {"w": json.dumps({"schema": 1, "weights": {"LM0": [1], "TM0": [1, 1], "WP0": [1], "a": [1]}, "provenance": {kind: {"a": entry}}})})
        for kind, option, entry in (("models", "--lm 'a=my lm'", {"folder": "my lm"}), ("scores", "--scores a=q.txt", {"file": "q.txt"}))),
    Fault("66-weight-of-no-feature-beside-a-renamed-one", "decode --kbest list --no-docs one --weights w --out -",
        "1 x weight of a feature that no line of the list has, ignored: other, first at w",
        {"list": "0 ||| a ||| tm_pt=1 ||| 0\n0 ||| b ||| tm_pt=2 ||| 0\n", "w": "tm_pt 1\nother 2\n"}, 0, {"w": "tm_pt 1\n"}),
    Fault("66-some-values-of-a-feature", DECODE.replace("w.ini", "w"), "w: expected weights of all 2 values of 'TM0', found TM0_1 and no TM0_0",
        {"w": "LM0= 1\nTM0_1= 1\nWP0= 1\n"}, cure={"w": "LM0= 1\nTM0_0= 1\nTM0_1= 1\nWP0= 1\n"}),
    Fault("66-list-without-features", "decode --kbest bare --no-docs one --weights w.ini", "w.ini: .*; there are none",
        {"bare": "0 ||| a |||  ||| 1\n0 ||| b |||  ||| 1\n"}),
    *(Fault(f"66-without-names-{n}", DECODE.replace("w.ini", "w"), f"w: expected 4 weights without names, F0 to F3, .* of LM0 TM0 WP0, found {n}", {"w": text},
        cure={"w": "1 2 3 4\n"}) for text, n in (("F0 1\nF1 2\nF2 3\n", 3), ("1 2 3\n0 0 0\n1 1 -1\n", 9))),
    Fault("66-list-for-weights-with-names", "weights w.ini --to dense --kbest dev.kbest", "--kbest dev.kbest: the weights have names of the", exit=2,
        cure="weights w.ini --to dense"),
    Fault("67-start-of-zeros", "tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --start z --out o.json",
        "z: expected .*, found all-zero weights; leave out", {"z": '{"schema": 1, "weights": {"LM0": [0.0], "TM0": [0, 0], "WP0": [0]}}'},
        cure="tune-mert --kbest dev.kbest --docs dev.docs --ref dev.ref --out o.json"),
]  # fmt: skip
