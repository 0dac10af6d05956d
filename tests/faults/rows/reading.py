"""Faults of lists, documents and weights, as decode, evaluate and others see them."""

from support.faults import (RESTORED, Fault, around, each_line, line, normal_form, order, recoded, without)
from support.world import CHECK, DECODE, EVALUATE, SOUND, TUNE

LIST, WEIGHTS = {"dev.kbest": RESTORED}, {"w.ini": RESTORED}
FROM_SOURCE = DECODE + " --missing source --source dev.src"
HUGE = {"dev.kbest": line(3, "LM0= -7", "LM0= -1.7e308")}
CRLF = {"dev.kbest": lambda content: content.replace(b"\n", b"\r\n")}
WHOLE = b"a lamp burns and it gives light\n\nthe caf\xc3\xa9 is closed and no one is coming\n"
FAULTS = [
    # Lists
    Fault("04-encoding-wrong", DECODE + " --encoding ascii",
          r"dev\.kbest:6: expected ascii, found 0xE9 at byte 14 of the line; name the encoding of the list with "
          "--encoding", {"dev.kbest": recoded("latin-1")}, cure=DECODE + " --encoding latin-1 --strict"),
    Fault("04-encoding-replaced", DECODE + " --encoding-errors replace",
          r"warning: \d+ x bytes that are not utf-8, read as U\+FFFD, first at dev\.kbest:6", {"dev.kbest": recoded("latin-1")}, 0, asked=True),
    Fault("22-flat-without-k", "decode --kbest dev.ref --kbest-format flat --docs dev.docs --weights w.ini --out -",
          "--kbest-format flat: expected flat:K", {}, 2, "convert --kbest dev.ref --kbest-format flat:1 --to moses"),
    Fault("22-unknown-format-name", DECODE + " --kbest-format mosse", "no format 'mosse'; did you mean moses", {}, 2,
          DECODE + " --kbest-format moses"),
    Fault("25-hole-refused", DECODE + " --missing error",
          r"dev\.kbest: expected hypotheses of every source line, found none of 1 \(ids 1\); .* --missing empty or "
          "--missing source", {"dev.kbest": without(3, 4, 5)}, cure=FROM_SOURCE),
    Fault("25-hole-without-a-source", DECODE + " --missing source",
          "--missing source needs the source sentences; give --source FILE", {"dev.kbest": without(3, 4, 5)}, 2, FROM_SOURCE),
    Fault("25-source-that-no-model-needs", DECODE + " --source dev.src", "no model here needs", {}, 2, DECODE),
    Fault("25-pairs-of-source-lines", FROM_SOURCE + " --pair-scores p=dev.pairs",
          "--pair-scores: it has no pairs of the source lines", {"dev.kbest": without(3, 4, 5)}, 2, FROM_SOURCE),
    Fault("25-hole-at-the-end-and-three-outputs", DECODE + " --out out.txt --kbest-out scored.kbest --summary summary.json --strict",
          r"dev\.kbest: source line without hypotheses \(ids 3\) \(an error under --strict; ", {"dev.kbest": without(8, 9)}, cure=LIST),
    Fault("26-ids-fall-for-diversity", "diversity --kbest dev.kbest",
          r"dev\.kbest:3: expected ids of this document or a later one, found 0 \(interleaved ids\); if all .* rerank check --fix NEW sorts the list",
          {"dev.kbest": order(1, 3, 2, 4, 5, 6, 7, 8, 9)}, cure=LIST),
    Fault("28-ids-from-one-for-the-oracle", EVALUATE + " --kbest dev.kbest", ("1-based", "--first-id 1"),
          {"dev.kbest": each_line(lambda one: f"{int(one[0]) + 1}{one[1:]}")}, cure=EVALUATE + " --kbest dev.kbest --first-id 1"),
    Fault("30-clip-nan", DECODE + " --clip-inf nan", "--clip-inf", {}, 2, DECODE + " --clip-inf -1e4"),
    Fault("30-feature-inf-clipped", DECODE + " --clip-inf -1e4", r"1 x infinite number, clipped, first at dev\.kbest:3",
          {"dev.kbest": line(3, "LM0= -7", "LM0= -inf")}, 0, asked=True),
    Fault("30-feature-too-large", DECODE,
          r"dev\.kbest:3: expected a finite number up to 1e\+100 for LM0, found '-1\.7e308'; give --clip-inf", HUGE,
          cure=DECODE + " --clip-inf -1e4"),
    Fault("31-number-empty", DECODE, r"dev\.kbest:3: expected .*WP0.*found (none|0|.*WP0)",
          {"dev.kbest": line(3, "WP0= -3", "WP0= ")}, cure=LIST),
    Fault("41-list-too-long-to-be-read", DECODE + " --max-k 2",
          r"dev\.kbest:5: expected at most 2 hypotheses of a sentence, found more of sentence 1; give --top to keep the first "
          "ones, or raise --max-k", cure=DECODE + " --max-k 3"),
    # Texts and documents
    Fault("12-composed-and-decomposed", EVALUATE,
          ("1 x hypotheses in Unicode form NFD, references in NFC: equal words differ.*first at hyp.txt:3",
          "--normalize nfc"), {"hyp.txt": normal_form("NFD")}, 0, EVALUATE + " --normalize nfc --strict"),
    Fault("47-hypotheses-too-few", EVALUATE,
          r"hyp\.txt: expected 4 lines as dev\.docs has, found 3; line i must translate line i of dev\.docs",
          {"hyp.txt": without(4)}, cure={"hyp.txt": RESTORED}),
    Fault("47-hypotheses-are-texts-of-documents", EVALUATE, r"; texts of whole documents need --align$",
          {"hyp.txt": WHOLE, "base.txt": WHOLE}, cure=EVALUATE + " --align"),
    Fault("47-rival-is-a-text-of-documents", "evaluate --docs dev.docs --ref dev.ref --systems A=base.txt --systems B=hyp.txt base.txt",
          r"hyp\.txt: .*; if it lacks lines, or has whole documents: --systems B=hyp\.txt,align=yes$", {"hyp.txt": WHOLE},
          cure="evaluate --docs dev.docs --ref dev.ref --systems A=base.txt --systems B=hyp.txt,align=yes base.txt"),
    Fault("47-system-is-a-text-of-documents", "decode --docs dev.docs --systems A=base.txt --systems B=hyp.txt",
          r"hyp\.txt: .*; if it lacks lines, or has whole documents, align it .*: --systems B=hyp\.txt,align=yes$", {"hyp.txt": WHOLE},
          cure="decode --docs dev.docs --systems A=base.txt --systems B=hyp.txt,align=yes"),
    Fault("50-no-documents", "decode --kbest dev.kbest --weights w.ini --out -", ("--docs FILE", "--no-docs each", "--no-docs one"), {}, 2,
          "decode --kbest dev.kbest --weights w.ini --out - --no-docs each"),
    Fault("50-two-kinds-of-documents", TUNE + " --no-docs each", ("--docs FILE", "--no-docs each", "--no-docs one"), {}, 2, TUNE),
    Fault("52-references-of-other-lengths", "evaluate --no-docs one --ref dev.ref --ref more.ref --baseline base.txt hyp.txt",
          r"more\.ref: expected 4 lines as dev\.ref has, found 1", {"more.ref": "the lamp\n"}, cure={"more.ref": SOUND["dev.ref"]}),
    # Weights
    Fault("04-not-utf-8-weights", DECODE, (r"w\.ini:1: expected UTF-8", "iconv"), {"w.ini": around(b"# caf\xe9\n")}, cure=WEIGHTS),
    Fault("66-default-weight", DECODE + " --default-weight 0",
          r"1 x feature without weight; 0 is used: WP0, first at w\.ini \[R401 feature-without-weight\]", {"w.ini": without(4)}, 0, asked=True),
    Fault("--allow-a-kind", DECODE + " --strict --allow crlf-line-ends", r"9 x CRLF line ends, .* \[R003 crlf-line-ends\]$", CRLF, 0, asked=True),
    Fault("--allow-a-kind-in-check", CHECK + " --strict --allow r003", (r"^1 warning, 0 of them errors under --strict:", r"\[R003 crlf-line-ends\]$"), CRLF, 0, asked=True),
    Fault("--allow-an-unknown-kind", DECODE + " --strict --allow clrf-line-ends",
          "'--allow': no kind of warning 'clrf-line-ends'; did you mean crlf-line-ends?", CRLF, 2, DECODE + " --strict --allow crlf-line-ends"),
    Fault("--allow-without-strict", DECODE + " --allow R003", "--allow crlf-line-ends: warnings are errors under --strict alone; add it", exit=2, cure=DECODE + " --strict --allow R003"),
    Fault("--allow-no-other-kind", DECODE + " --strict --allow blank-line", r"error under --strict; --allow crlf-line-ends accepts it",
          CRLF, cure=DECODE + " --strict --allow crlf-line-ends"),
    Fault("66-default-weight-infinite", DECODE + " --default-weight inf",
          "'--default-weight': expected a finite decimal number, found 'inf'", {}, 2, DECODE + " --default-weight 0"),
    Fault("66-no-weight", DECODE,
          (r"w\.ini: expected a weight for every feature of the list, found none for 'WP0'", "--default-weight 0"),
          {"w.ini": without(4)}, cure=DECODE + " --default-weight 0"),
    Fault("66-weight-of-unknown-feature", DECODE, (r"w\.ini", "DM0"), {"w.ini": around(end=b"DM0= 0.3\n")}, cure=WEIGHTS),
    Fault("66-wrong-number-of-weights", DECODE, ("TM0", r"\b2\b", r"\b1\b"), {"w.ini": line(3, "0.25 0.125", "0.25")}, cure=WEIGHTS),
    Fault("67-all-weights-zero", DECODE, r"w\.ini: expected a weight that is not 0, found all-zero weights; only --search smc, ffbs, mbr",
          {"w.ini": "LM0= 0\nTM0= 0 0\nWP0= 0\n"}, cure=DECODE + " --search mbr --alpha 1"),
]
