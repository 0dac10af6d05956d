"""Faults of document files, references and evaluation sets, and of systems' outputs."""

import json
from collections.abc import Callable

from support.faults import Changes, Fault, without
from support.world import DECODE

IDS = "convert --kbest dev.kbest --docs docs --to first"
SGML = '<refset refid="r">\n<doc docid="d">\n<seg id="1">a</seg>\n<seg id="2">b</seg>\n</doc>\n'
XML = """<dataset>
<doc id="d"><src><seg id="1">i</seg>
<seg id="2">ii</seg></src>
<ref translator="A"><seg id="1">1</seg><seg id="2">2</seg></ref>
<hyp system="X"><seg id="1">1</seg><seg id="2">2</seg></hyp>
<hyp system="Y"><seg id="1">I</seg><seg id="2">II</seg></hyp></doc>
</dataset>
"""
ONE_REFERENCE = {"t.xml": XML.replace('<seg id="2">2</seg></ref>', "</ref>"), "start.json": '{"schema": 1, "weights": {"A": [1]}}'}
JSON = '{"document": "a", "ref": "x"}\n'
TWO = {"two.kbest": "0 ||| a ||| A= 1 ||| 0\n0 ||| b ||| A= 1 ||| 0\n1 ||| c ||| A= 2 ||| 0\n"}
SYSTEMS = "score --docs dev.docs --systems A=base.txt"
LACKING = "tune-mert --kbest two.kbest --ref t.xml#A --drop-unreferenced --out new.json"
EVALUATE = "evaluate --baseline base.txt hyp.txt -m bleu"


def of_ids(
    name: str, wrong: str, message: str, cure: str | None = None, options: str = ""
) -> Fault:
    """A file of documents that is refused; cure: the file, or options, with which it is read."""
    sound = None if cure is None else f"{IDS} {cure}" if cure.startswith("--") else {"docs": cure}
    command = f"{IDS} {options}" if options else IDS
    return Fault(f"--docs-{name}", command, message, {"docs": wrong}, cure=sound)


def of_set(name: str, sound: str, faults: list[tuple[str, str, str]]) -> list[Fault]:
    """Faults of a set of two sentences in one document: replacements, and messages."""
    command = "convert --kbest two.kbest --docs t --to first"
    return [
        Fault(
            f"5{4 + (name == 'xml')}-{name}-{n}",
            command,
            rf"^rerank: t{message}",
            {**TWO, "t": sound.replace(old, new, 1)},
            cure={"t": sound},
        )
        for n, (old, new, message) in enumerate(faults, 1)
    ]


def of_options(name: str, command: str, message: str, cure: str | None, code: int = 2) -> Fault:
    """Options that do not fit the files, among them `t.xml` with two systems and `s.sgm`."""
    files: Changes = {"t.xml": XML, "s.sgm": SGML, "text": "x\n", "short": "uno\ndos\n",
                      "one.docs": "d\nd\n", "one": "1\n2\n"}  # fmt: skip
    return Fault(f"--{name}", command, message, files, code, cure)


FOUR = ("the lamp is lit", "it gives a light", "the café, closed", "nobody is coming")
PLAIN = "evaluate --no-docs one --baseline base.txt hyp.txt -m bleu --ref t"
PARAGRAPHS = {"p.jsonl": json.dumps({"doc_id": "d", "src_text": "i\n\nii", "refs": {"A": {"ref": "1\n\n2"}}}),
              "one": "1\n2\n"}  # fmt: skip


def no_text(name: str, content: str, found: str, command: str = PLAIN) -> Fault:
    """A file that is no plain text, though it is read where one is expected."""
    return Fault(f"28-{name}", command, f"t:1: expected a sentence per line, found {found}", {"t": content},
                 cure={"t": "".join(f"{x}\n" for x in FOUR)})


def in_json(make: Callable[[str], object]) -> str:
    """A line of JSON for each of the four sentences."""
    return "".join(f"{json.dumps(make(text))}\n" for text in FOUR)


FAULTS = [
    # Plain texts that are none
    no_text("objects", in_json(lambda x: {"src": "a", "ref": x}), "JSON with .src, .ref; write its texts alone, one on each line, or .*key document"),
    no_text("nested", in_json(lambda x: {"translation": {"a b": "y", "en": x}}), r"JSON with \.translation\."),
    no_text("words", in_json(lambda x: {"url": "https://example.org/a/long/address", "sentences": [x.split()] * 9}),
        r"JSON with .url, .sentences\[0\]\[0\], .*write its texts alone, one on each line$",
        command="train-ngram --order 2 --discount-fallback --train t --out m"),
    no_text("quoted", in_json(str), "JSON with texts in quotes"),
    no_text("lists", in_json(lambda x: [1, x]), r"JSON with \.\[1\]"),
    no_text("answers", in_json(lambda x: {"id": "chat-1 of a server", "body": {"choices": [{"message": {"role": "assistant", "content": x}}]}}),
        r"JSON with .*\.body\.choices\[0\]\.message\.content"),
    no_text("ids-in-csv", "".join(f"{n},{x.replace(',', '')}\n" for n, x in enumerate(FOUR)), "CSV with ids"),
    no_text("array", json.dumps(FOUR), "JSON with texts in quotes; write"),
    no_text("over-lines", json.dumps([{"document": "d", "ref": x} for x in FOUR], indent=1), "JSON over several lines; write its texts alone"),
    no_text("csv", "id,reference\n" + "".join(f'1,"{x}"\n' for x in FOUR), "a table with the columns id, reference"),
    no_text("quotes", "".join(f'"{x}"\t"y"\n' for x in FOUR), "CSV with texts in quotes"),
    no_text("tmx",
        "<tmx><body>\n" + "".join(f'<tu><tuv lang="de"><seg>x</seg></tuv><tuv lang="en"><seg>{x}</seg></tuv></tu>\n' for x in FOUR) + "</body></tmx>",
        "TMX, a translation memory"),
    no_text("xliff",
        '<?xml version="1.0"?>\n<xliff xmlns="urn:x">' + "".join(f"<unit><source>x</source><target>{x}</target></unit>\n" for x in FOUR) + "</xliff>",
        "XLIFF"),
    no_text("segments", "".join(f"<seg id='1'>{x}</seg>\n" for x in FOUR), "XML; write its texts alone"),
    no_text("system", in_json(lambda x: {"src": "a", "mt": x}), "JSON with .src, .mt; write",
        command="score --no-docs one --systems A=base.txt --systems B=t --out new"),
    no_text("source", in_json(lambda x: {"src": x, "ref": "y"}), "JSON with .src, .ref; write",
        command="first --kbest dev.kbest --docs dev.docs --missing source --source t --out new"),
    Fault("28-document-ids", f"{IDS}", "docs:1: expected a document id on each line, found JSON with .talk, .x; .*--docs-field KEY",
        {"docs": '{"talk": "a", "x": "b"}\n' * 4}, cure=f"{IDS} --docs-field talk"),
    Fault("28-fields", PLAIN, "2 fields parted by TABs on each line, read as one text; give the text alone or, if they are several references, each",
        {"t": "".join(f"{x}\t{x}\n" for x in FOUR[:2]) + "".join(f"{x}\t\n" for x in FOUR[2:])}, 0, {"t": "".join(f"{x}\n" for x in FOUR)}),
    *(Fault(f"28-fields-{n}", PLAIN, rf"2 fields parted by {mark} on each line, read as one text; give the text alone",
        {"t": "".join(f"{line.format(x=x, n=n)}\n" for n, x in enumerate(FOUR))}, 0, {"t": "".join(f"{x}\n" for x in FOUR)})
        for n, (line, mark) in enumerate((("{n}\t{x}", "TABs"), ("{x} ||| 0-0 1-{n}", "[|]{3}")))),
    # Documents of WMT, of OPUS, of mt-metrics-eval
    Fault("48-segments-not-in-order", PLAIN.replace("--no-docs one", ""), "segments put in the order of their ids",
        {"t": "".join(f'{{"document": "d", "seg_id": {n}, "target": "x"}}\n' for n in (4, 1, 2, 3))}, 0,
        {"t": "".join(f'{{"document": "d", "seg_id": {n}, "target": "x"}}\n' for n in (1, 2, 3, 4))}),
    Fault("48-segment-twice", "evaluate --ref t --baseline one one -m bleu", "t:2: expected an id of each segment of document 'd', found '1' again",
        {"t": '{"document": "d", "seg_id": 1, "ref": "1"}\n' * 2, "one": "1\n2\n"},
        cure={"t": "".join(f'{{"document": "d", "seg_id": {n}, "ref": "1"}}\n' for n in (1, 2))}),
    Fault("48-segments-numbered-otherwise", "evaluate --ref t --baseline u u -m bleu", "u: expected the segments of document 'd' .*, from '0' on, found '2'; number",
          {one: "".join(f'{{"document": "d", "seg_id": {n + start}, "{key}": "x"}}\n' for n in (0, 1)) for one, start, key in (("t", 0, "ref"), ("u", 1, "mt"))},
          cure={"u": "".join(f'{{"document": "d", "seg_id": {n}, "mt": "x"}}\n' for n in (0, 1))}),
    Fault("49-numbers-of-sentences", PLAIN.replace("--no-docs one", "--docs docs"), "document of one sentence.*otherwise --no-docs each",
        {"docs": "1\n2\n3\n4\n5\n", **dict.fromkeys(("t", "base.txt", "hyp.txt"), "a b\n" * 5)}, 0, PLAIN.replace("one", "each")),
    Fault("52-paragraphs-of-a-document", "evaluate --ref t --baseline one one -m bleu", "t:1: expected as many paragraphs .*, found 2 in the source, 1 in the "
        "reference A; correct them, or join the paragraphs of each", {**PARAGRAPHS, "t": PARAGRAPHS["p.jsonl"].replace("1\\n\\n2", "1")},
        cure={"t": PARAGRAPHS["p.jsonl"]}),
    Fault("52-paragraphs-of-a-system", "evaluate --ref p.jsonl --baseline one t -m bleu",
        "t: expected 2 segments of document 'd' as the documents have, found 1; join", {**PARAGRAPHS, "t": '{"doc_id": "d", "hypothesis": "1 2"}\n'},
        cure={"t": '{"doc_id": "d", "hypothesis": ["1", "2"]}\n'}),
    Fault("54-systems-without-segments", "evaluate --ref r --baseline list list -m bleu", "list:2: expected ids of segments in a file of 2 systems",
        {"r": '{"doc": "d", "ref": "a"}\n' * 2, "list": "".join(f'{{"doc": "d", "system": "{s}", "hyp": "a"}}\n' for s in "XXYY")},
        cure={"list": '{"doc": "d", "system": "X", "hyp": "a"}\n' * 2}),
    Fault("49-one-sentence-in-json", "evaluate --ref t --baseline one one -m bleu", "4 x document of one sentence.*, leave the numbers out",
        {"t": "".join(f'{{"doc": "{d}", "ref": "1"}}\n' for d in ("a-1", "a-2", "b-1", "b-2")), "one": "2\n" * 4}, 0,
        {"t": "".join(f'{{"doc": "{d}", "ref": "1"}}\n' for d in "aabb")}),
    Fault("52-bad-source", "evaluate --ref t --baseline one one -m bleu", "1 x segment whose source is marked as bad .*; leave it out of all files",
        {"t": '{"document": "d", "ref": "1", "is_bad_source": false}\n' * 2 + '{"document": "d", "ref": "2", "is_bad_source": true}\n', "one": "1\n2\n3\n"}, 0,
        {"t": '{"document": "d", "ref": "1", "is_bad_source": false}\n' * 2, "one": "1\n2\n"}),
    Fault("48-paragraphs-not-in-order", "evaluate --ref t --baseline one one -m bleu", "1 x segments put in the order of their ids",
        {"t": "".join(f'{{"doc_id": "en-de_#_news_#_d_#_{n}", "refs": {{"A": {{"ref": "{n}"}}}}}}\n' for n in (2, 1)), "one": "1\n2\n"}, 0,
        {"t": "".join(f'{{"doc_id": "en-de_#_news_#_d_#_{n}", "refs": {{"A": {{"ref": "{n}"}}}}}}\n' for n in (1, 2))}),
    Fault("52-key-that-is-not-read", "evaluate --ref t --baseline one one -m bleu", "unread key that looks like that of a text: post_edited_text",
        {"t": '{"document": "d", "ref": "1", "post_edited_text": "2"}\n' * 2, "one": "1\n2\n"}, 0, {"t": '{"document": "d", "ref": "1"}\n' * 2}),
    Fault("20-line-end-in-a-text", "evaluate --ref t --baseline t t -m bleu",
        ("1 x line end inside a text, read as a space, first at t:1", "its reference read as the translation"),
        {"t": '{"document": "d", "ref": "1\\n2"}\n{"document": "d", "ref": "3"}\n'}, 0,
        {"t": '{"document": "d", "ref": "1 2", "hyp": "1"}\n{"document": "d", "ref": "3", "hyp": "3"}\n'}),
    *(Fault(f"49-one-sentence-{n}", IDS, f"document of one sentence.*give {cure}", {"docs": ids}, 0, f"{IDS} {cure}")
        for n, (ids, cure) in enumerate((("a-1\na-2\nb-1\nb-2\n", "--docs-format numbered-docids"), ("a,0\na,1\nb,0\nb,1\n", "--docs-format numbered-docids"),
        ("a(1)\na(2)\nb(1)\nb(2)\n", "--docs-format numbered-docids"), ("x\tn1\tk\nx\tn2\tk\ny\tn3\tk\ny\tn4\tk\n", "--docs-field 1")))),
    of_ids("heading", "doc_id,seg\na\na\nb\nb\n", "docs:1: expected ids, found the heading .*; remove it", "a\na\nb\nb\n"),
    of_ids("field-missing", "a 1\na 2\nb\nb 2\n", "docs:3: expected a field 2 .*, found 1 in 'b'", "--docs-field 1", "--docs-field 2"),
    of_ids("field-of-a-blank-line", "a 1\n \nb 1\nb 2\n", "docs:2: expected a field 1 .*, found 0", "a 1\na 2\nb 1\nb 2\n", "--docs-field 1"),
    *(Fault(f"--docs-field-{field}", f"{IDS} --docs-field={field}", "expected the number of a field, from 1", {"docs": "a\na\nb\nb\n"}, 2,
        f"{IDS} --docs-field 1") for field in ("0", "9999999")),
    of_ids("resumes", "a\nb\na\nb\n", "docs:3: .*'a', which began on line 1, continues.*interleave", "--allow-interleaved"),
    of_ids("resumes-after-a-long-id", f"{'x' * 5000}\nb\n{'x' * 5000}\n", "docs:3: expected each document in one run of lines, but .{,250}continues"),
    # JSON lines
    *(
        of_ids(f"json-{n}", JSON + line + "\n" + JSON * 2, f"docs:2: {message}", JSON * 4)
        for n, (line, message) in enumerate((
            ("{", "expected a JSON object with the key 'document', found '{'"),
            ('{"document": ' + "1" * 5000 + "}", "expected a JSON object"),
            ('{"documents": "a"}', ".*found none; did you mean 'documents'.*--docs-field"),
            ('{"document": null}', "expected a text or whole number as 'document', found N"),
            ('{"document": "\\ud800"}', "found half a surrogate pair in 'document'"),
            ('{"document": "a", "refs": [1]}', "expected texts in 'refs', found int"),
            (r'{"document": "a\nb"}', "expected one line as 'document', found a line end or NUL; remove it"),
        ))
    ),
    # Numbered ids, sizes
    *(of_ids(f"numbered-{n}", lines, message, "a_1\na_2\na_3\nb_1\n", "--docs-format numbered-docids")
        for n, (lines, message) in enumerate((("a_1\na_2\na\n", "docs:3: expected DOCID_NUMBER, found 'a'"), ("a_1\na_2\nb_1\na_3\n",
        "docs:4: .*'a', which began on line 1, continues")))),
    *(
        of_ids(f"sizes-{n}", lines, message, "a 1\nb 3\n", "--docs-format sizes")
        for n, (lines, message) in enumerate((
            ("", "expected the size of each document, found none"),
            ("a 1\nb x\n", "docs:2: expected SIZE or DOCID SIZE, found 'b x'"),
            ("99999999999999999999\n", "docs:1: expected SIZE or DOCID SIZE"),
            ("999999999\n999999999\n", "docs:2: expected at most 999,999,999 sentences"),
            ("a 1\na 2\nb 1\n", "docs:2: expected .*found 'a' again; give each .*--docs-field 1"),
        ))
    ),
    of_ids("blank-lines-alone", "\n\n", "docs: expected one document id per source line, found non", options="--docs-format blank-lines"),
    *(
        Fault(f"47-ids-that-may-be-sizes-{n}", DECODE.replace("dev.docs", "docs"), (message, cure),
              {"docs": docs}, cure={"docs": "x 2\ny 2\n" if "ids and" in cure else "a\na\nb\nb\n"})
        for n, (docs, message, cure) in enumerate((
            ("3\n1\n", "expected (ids of )?2 ", "if these numbers are sizes .*--docs-format sizes"),
            ("1\n1\n2\n1\n", "docs:4: expected each document in one run of lines, but '1'", "if t"),
            ("x 3\nx 1\n", "expected (ids of )?2 ", "if these are ids and sizes .*--docs-format s"),
            ("x 2\ny 1\nx 2\n", "docs:3: expected each document in one run", "if these are ids an"),
        ))
    ),
    *(Fault(f"22-subtitles-{n}", command, "found subtitles with their times", {"a.srt": f"1\n{times}\nthe ferry leaves .\n\n" * 3})
        for n, (command, times) in enumerate((("evaluate --no-docs each --ref a.srt a.srt", "00:00:00,100 --> 00:00:01,900"),
        ("train-ngram --train a.srt --out m", "00:00.100 --> 00:01.900")))),
    Fault("47-evaluation-with-lines-apart", "evaluate --ref dev.ref --baseline base.txt hyp.txt " "--docs docs --allow-interleaved",
        "expected 3 lines as docs has, found 4; if these numb", {"docs": "2\n1\n2\n"}, cure={"docs": "2\n1\n2\n1\n"}),
    Fault("--docs-format", f"{IDS} --docs-format size", "no document format 'size'; did you mean ", {"docs": "a 3\nb 1\n"}, 2, f"{IDS} --docs-format sizes"),
    Fault("--docs-field-of-sizes", f"{IDS} --docs-format sizes --docs-field 1", "--docs-field 1: the format sizes has no fields", {"docs": "a 3\nb 1\n"}, 2,
        f"{IDS} --docs-format sizes"),
    Fault("92-many-document-ids", IDS, "docs:65538: expected at most 65,537 document ids", {"docs": "a\n" * 70_000}),
    Fault("92-many-sentences-of-text", f"{IDS} --docs-format blank-lines", "docs.*: expected at most [0-9,]+ document ids", {"docs": "a b\n" * 70_000}),
    # Evaluation sets
    *of_set("sgml", SGML,
        [('<seg id="2">', '<seg id="1">', ":4: expected one segment '1' of document 'd' in referen"), ("b</seg>\n</doc>\n", "b\n",
        ":4: expected </seg> .*end of the fil"), ("a</seg>", "a", ":3: expected </seg> before"), ("b</seg>", "b", ":4: expected </seg> before"),
        ('<doc docid="d">', "", ':3: expected <doc docid="…"> before'), ('<seg id="1">a', "a", ":3: expected <seg> before"), ('docid="d"', 'sysid="d"',
        ":2: expected a docid of the document"), (SGML, "<refset>\n", ": expected segments of documents, found none")]),
    *of_set("xml", XML,
        [("<dataset>", '<!DOCTYPE d SYSTEM "file:///etc/passwd">\n<dataset>', ":1: .*entities are "), ("<dataset>",
        '<!DOCTYPE l [\n<!ENTITY a "aaaa">\n<!ENTITY b "&a;&a;">]>\n<dataset>', ":[1-4]: .*entities are not allowed: remove the <!DOCTYPE …>"), ("</doc>", "",
        ":7: expected valid XML, .*mismatched tag"), ("ii<", "&x;<", ":3: expected valid XML, .*undefined entity"), ("<src>", "<p>" * 60 + "<src>",
        ":2: .*found too deep a nesting"), ('<doc id="d">', "<doc>", ":2: expected an id of the document, found none"), ("</doc>", '</doc>\n<doc id="d"/>',
        ":7: expected each document once .*'d' again, .* line"), ('<seg id="2">ii', '<seg id="x">ii', ":3: expected a number from 1 as id of a segment, fo"),
        ("ii<", ("x" * (1 << 22) + "\n") * 4 + "<", ":6: expected at most 16,777,216 characters in a segment, found more")]),
    Fault("--docs-sgml-as-xml", "convert --kbest two.kbest --docs t --to first --docs-format wmt-xml",
        "t:1: expected <dataset> of WMT XML, found <refset>; NIST SGML has <refset>", {**TWO, "t": SGML},
        cure="convert --kbest two.kbest --docs t --to first --docs-format sgml"),
    Fault("47-set-of-other-sizes", "evaluate --docs ids --ref t.xml --baseline t.xml#X t.xml#Y -m bleu",
        "t.xml: expected 3 segments of document 'd' as the documents have, found 2; give --docs a file with segment ids", {"t.xml": XML, "ids": "d\nd\nd\n"},
        cure="evaluate --docs t.xml --ref t.xml --baseline t.xml#X t.xml#Y -m bleu"),
    # Texts of a set, by name
    of_options("text-of-several", "evaluate --ref t.xml --baseline t.xml one -m bleu", "expected one system, found 2; give t.xml#X, t.xml#Y",
        "evaluate --ref t.xml --baseline t.xml#X one -m bleu"),
    of_options("text-of-a-plain-file", "evaluate --ref t.xml --baseline one#Z one -m bleu", "one#Z: #Z chooses a text of WMT XML.*is a plain text",
        "evaluate --ref t.xml --baseline one t.xml#X -m bleu"),
    of_options("text-of-no-file", "evaluate --ref t.xml --baseline nil#Z one -m bleu", "no file nil", None),
    of_options("reference-of-a-system", "evaluate --ref s.sgm#q --baseline one one -m bleu", "expected the reference 'q', found reference", None, 3),
    of_options("documents-twice", "evaluate --no-docs one --ref t.xml --baseline one one -m bleu", "--no-docs one: .* says what the documents are",
        "evaluate --ref t.xml --baseline one t.xml#X -m bleu"),
    Fault("--set-of-other-documents", "evaluate --ref e.sgm --baseline t.xml#X t.xml#Y -m bleu", "t.xml#X: expected segments of these documents, found n",
        {"t.xml": XML, "e.sgm": SGML.replace('"d"', '"e"')}, cure={"e.sgm": SGML}),
    of_options("no-reference", f"{EVALUATE} --no-docs one", "expected a reference file, found none", f"{EVALUATE} --no-docs one --ref dev.ref"),
    of_options("reference-and-test-set", f"{EVALUATE} -t wmt23 -l ru-en --ref dev.ref", "expected --ref or --test-set, found both",
        f"{EVALUATE} --no-docs one --ref dev.ref"),
    of_options("test-set-without-pair", f"{EVALUATE} -t wmt23", "expected both or none", None),
    of_options("test-set-as-translation", f"{EVALUATE} --ref dev.ref --no-docs one sacrebleu:wmt23", "expected a translation, found a test set; give a file",
        None),
    *(of_options(f"test-set-{n}", f"{EVALUATE} --ref sacrebleu:{name}", message, None)
        for n, (name, message) in enumerate((("wmt23", r"expected sacrebleu:TESTSET/PAIR, as sacrebleu:wmt23/ru-en, found"), ("wmt232/ru-en",
        r"no test set 'wmt232'; did you mean wmt23\? there are \d+"), ("wmt23/ru-xx", "no language pair 'ru-xx'; it has .*ru-en")))),
    # References
    Fault("52-reference-of-other-documents", "tune-mert --kbest dev.kbest --ref r.jsonl --source " "s.jsonl --missing source --out new.json",
        "s.jsonl: expected the documents of .*documen",
        {"r.jsonl": '{"document": "a", "ref": "x"}\n' * 4, "s.jsonl": '{"document": "b", "source": "x"}\n' * 4}),
    *(
        Fault(f"52-reference-of-other-{name}", "tune-mert --kbest dev.kbest --ref r.jsonl --source s.jsonl --missing source --out new.json",
              f"s.jsonl: expected the documents of r.jsonl in their order, found {found}; give --docs FILE",
              {"r.jsonl": '{"document": "a", "ref": "x"}\n' * 4,
               "s.jsonl": "".join(f'{{"document": "{one}", "source": "x"}}\n' for one in ids)})
        for name, ids, found in (("sizes", "aaab", "3 sentences of document 'a', not 4"), ("number-of-documents", "aaaab", "2 documents, not 1"))
    ),
    Fault("52-set-of-another-length", "evaluate --no-docs one --ref dev.ref --ref t.xml --baseline base.txt hyp.txt",
        "t.xml: expected 4 lines as dev.ref has, found 2", {"t.xml": XML}, cure="evaluate --no-docs one --ref dev.ref --baseline base.txt hyp.txt"),
    Fault("92-reference-of-many-lines", EVALUATE + " --docs dev.docs --ref dev.ref --ref r",
        "r: expected 4 lines as dev.docs has, found 1004 or more; line i must translate", {"r": "a\n" * 100_000}),
    # Outputs of systems
    of_options("systems-one", SYSTEMS, "expected two systems or more, found A; there is nothing", f"{SYSTEMS} --systems B=hyp.txt"),
    of_options("systems-of-one-name", f"{SYSTEMS} --systems A=hyp.txt", "two systems are named 'A'", f"{SYSTEMS} --systems B=hyp.txt"),
    of_options("systems-short", f"{SYSTEMS} --systems B=short", "short: expected 4 lines .* found ", f"{SYSTEMS} --systems B=hyp.txt", 3),
    of_options("systems-of-plain-text", f"{SYSTEMS} --systems hyp.txt", "hyp.txt: expected outputs of systems .*give NAME=FILE",
        f"{SYSTEMS} --systems B=hyp.txt", 3),
    of_options("systems-name-of-xml", "score --systems X=one --systems t.xml", "two systems are named 'X'", "score --systems Z=one --systems t.xml"),
    of_options("systems-several-of-xml", "score --docs t.xml --systems A=one --systems B=t.xml", "expected one system, found 2; give t.xml#X",
        "score --docs t.xml --systems A=one --systems B=t.xml#X"),
    of_options("systems-all-aligned", "score --docs dev.docs --systems A=one,align=yes --systems B=base.txt,align=yes",
        "expected a system with a line per segment, .*found none; add one, or, to choose among whole",
        "score --docs dev.docs --systems A=one,align=yes --systems B=base.txt"),
    of_options("systems-align", f"{SYSTEMS} --systems B=one,align=2", "align: '2' is not a valid boolean", f"{SYSTEMS} --systems B=one,align=yes"),
    of_options("systems-aligned-several", "score --docs t.xml --systems A=one --systems B=t.xml,align=yes",
        "t.xml: expected one system, found 2; give t.xml#X, t.xml#Y", "score --docs t.xml --systems A=one --systems B=t.xml#X,align=yes"),
    Fault("--align-folder", f"{EVALUATE} --docs dev.docs --ref dev.ref --align".replace("base.txt hyp.txt", "base.txt f"),
        "f: expected a text of each document, found none of 'town'; name the files by the ids, as f/town.txt", {"f/evening.txt": "the lamp is lit\n"},
        cure={"f/town.txt": "the café\n"}),
    Fault("--align-as-one", f"{EVALUATE} --docs dev.docs --ref dev.ref --align".replace("base.txt hyp.txt", "base.txt f"),
          "documents of a text not found, which is aligned as one; a folder of files named by document",
          {"f": "the lamp is lit it gives a light\n\nthe café\n\nis closed nobody is coming\n"}, 0,
          cure={"f": '{"doc_id": "evening", "hypothesis": "the lamp is lit it gives a light"}\n{"doc_id": "town", "hypothesis": "the café is closed nobody is coming"}\n'}),
    of_options("lists-with-scores-of-one", f"{SYSTEMS} --kbest dev.kbest --kbest-scores dev.qe", "--kbest-scores: not for several lists; leave it out",
        f"{SYSTEMS} --kbest dev.kbest"),
    of_options("no-list", "score --docs dev.docs --scores a=b", "--kbest FILE or --systems NAME=FI", None),
    *(of_options(f"systems-with-{option[2:]}", f"{SYSTEMS} --systems B=hyp.txt {option} {value}", f"{option}: not for the lists of",
        f"{SYSTEMS} --systems B=hyp.txt") for option, value in (("--encoding", "cp1252"), ("--kbest-format", "moses"))),
    Fault("--system-without-a-document", "score --systems t.xml", "t.xml#Y: expected outputs for all documents, found none for 'd'; leave the system",
        {"t.xml": without(6)(XML.encode()).replace(b"</hyp>\n", b"</hyp><hyp system='Y'>" b"<seg id='3'>x</seg></hyp></doc>\n")}),
    # Sentences without reference
    Fault("50-no-documents-to-tune-on", "tune-mert --kbest dev.kbest --ref dev.ref --starts 1 --out new.json",
        r"--docs FILE .*--no-docs each .* and --no-docs one .*, found none; give one", {}, 2,
        "tune-mert --kbest dev.kbest --ref dev.ref --starts 1 --out new.json --docs dev.docs"),
    Fault("52-no-reference-of-any-sentence", "tune-mert --kbest two.kbest --docs one.docs --ref " "t.xml#A --drop-unreferenced --out new.json",
        "expected references of these 2 sentences,", {**TWO, "one.docs": "e\ne\n", "t.xml": XML}),
    Fault("96-pairs-of-documents-of-which-sentences-are-left-out", f"{LACKING} --pair-scores p", "--pair-scores: its lines number the sentences "
        "of whole documents, of which --drop-unreferenced leaves some out", {**TWO, **ONE_REFERENCE, "p": ""}, 2, f"{LACKING} --start start.json"),
    Fault("52-reference-lacks-a-sentence", "evaluate --ref t.xml --baseline one t.xml#X -m bleu",
        "t.xml#?A?: expected a reference of each of 2 sentences, found none of 1.*segment 2 of d", {"one": "1\n2\n", "t.xml": ONE_REFERENCE["t.xml"]},
        cure="evaluate --ref t.xml --baseline one t.xml#X -m bleu --drop-unreferenced"),
    # Documents as files
    *(of_options(f"export-{n}", f"export {name}=text --docs dev.docs --out new", message, None)
        for n, (name, message) in enumerate((("../x", "choose another NAME"), (".", "choose another"), ("ours=dev.ref ours", "the NAME of two files")))),
    of_options("export-without-name", "export dev.ref --docs dev.docs --out new", "expected NAME=F", "export ours=dev.ref --docs dev.docs --out new"),
    *(
        Fault(f"--pearmut-{name}", f"export {command} --docs dev.docs --out new", message, {}, 2, cure)
        for name, command, message, cure in (
            ("of-one-text", "ours=hyp.txt --to pearmut", "expected two texts to compare, found one; add NAME=FILE",
             "export ours=hyp.txt base=base.txt --to pearmut --docs dev.docs --out new"),
            ("not-asked-for", "ours=hyp.txt base=base.txt --source dev.src", "seen by annotators of --to pearmut alone; give that",
             "export ours=hyp.txt base=base.txt --source dev.src --to pearmut --docs dev.docs --out new"),
            ("of-equal-texts", "ours=hyp.txt base=hyp.txt --to pearmut", "the texts are equal in all documents; there is nothing to compare", None),
        )
    ),
    Fault("82-export-into-a-folder-in-use", "export ours=dev.ref --docs dev.docs --out used", "new or empty folder", {"used/file": "x"}, 2,
        "export ours=dev.ref --docs dev.docs --out new"),
]  # fmt: skip
