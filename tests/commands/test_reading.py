"""What a k-best list of each format means: bytes of a list, and the same list as JSON lines.

Lines are made up in the spelling that each tool's source code writes; scores are worked out by
hand: fairseq prints logarithms of base 2, Sockeye and Nematus print costs.
"""

import json
import re
from math import log
from typing import Any

import pytest
from support.world import World

LN2 = log(2)
Candidate = tuple[int | str, str, dict[str, Any], float | None]  # sentence, text, features, total

GENERATE = """2026-11-23 10:00:00 | INFO | fairseq.tasks | [de] dictionary
S-1\tdie lampe
T-1\tthe lamp
H-1\t-0.5\tthe la@@ mp
D-1\t-0.5\tthe lamp
P-1\t-0.5000 -0.2500 -0.7500
A-1\t0-0 1-1
H-1\t-0.75\ta la@@ mp
D-1\t-0.75\ta lamp
P-1\t-1.0000 -0.5000 -0.7500
S-0\tlicht
H-0\t-1.5\tlight
D-0\t-1.5\tlight
P-0\t-1.0000 -2.0000
E-0_0\t-1\tli

2026-11-23 10:00:01 | INFO | fairseq_cli.generate | done
Generate test with beam=5: BLEU4 = 1.0
"""
GENERATED: list[Candidate] = [
    (0, "light", {"logprob": -3 * LN2, "score": -1.5 * LN2}, -1.5 * LN2),
    (1, "the lamp", {"logprob": -1.5 * LN2, "score": -0.5 * LN2}, -0.5 * LN2),
    (1, "a lamp", {"logprob": -2.25 * LN2, "score": -0.75 * LN2}, -0.75 * LN2),
]
SOCKEYE = """{"score": 1.5, "scores": [[1.5], [1.75]], "sentence_id": 1, "translation": "a lamp", \
"translations": ["a lamp", "the lamp"]}
{"score": 0.5, "sentence_id": 2, "translation": "light"}
"""
SINGLE = '{"sentence_id": 1, "translation": "x", "score": 4, "factor1_score": 5}\n'
SEVERAL = (
    '{"sentence_id": 2, "translation": "y", "score": 1, "factor1_score": 2, '
    '"translations": ["y", "z"], "scores": [[1, 2], [3, 4]]}\n'
)
UTTERANCES = {
    "b": {"ref": "a lamp", "hyp_2": {"score": -2, "text": "lamp"}, "hyp_10": {"score": -3,
        "text": "lamps"}, "hyp_1": {"score": -1.5, "text": "a lamp"}},
    "a": {"ref": "x", "hyp_1": {"score": -1, "text": "x"}},
}  # fmt: skip
SPOKEN: list[Candidate] = [
    *((0, text, {"score": s}, s) for text, s in (("a lamp", -1.5), ("lamp", -2), ("lamps", -3))),
    (1, "x", {"score": -1}, -1),
]
JSON_LINES = """{"document": "d", "source": "licht", "candidates": [\
{"text": "light", "score": -1, "features": {"lp": -2, "TM0": [1, 2]}, "model": "m"}, \
{"text": "lights", "score": -3, "features": {"TM0": [3, 4], "lp": -5}, \
"sparse": {"t_a": 1}}]}
{"document": "d", "source": "x", "candidates": []}
{"document": "e", "candidates": [{"text": "y", "score": 0, "features": {"lp": 1, "TM0": [2, 3]}}]}
"""
CDEC = """0 ||| a lamp ||| LM=-3.5 PhraseModel_0=1 ||| -2
0 ||| lamp ||| LM=-4 Glue=2 ||| -3
"""
JOSHUA = """0 ||| a lamp ||| tm_pt_0=-1 lm_0=-3.5 ||| -2
0 ||| lamp ||| tm_pt_0= -2 lm_0= -4 WordPenalty= -1 ||| -3
"""
TRAVATAR = """0 ||| a lamp ||| -2 ||| egfp=-1 lm=-3.5
0 ||| lamp ||| -3 ||| lm=-4 word=1
"""
NEMATUS = "0 ||| a lamp ||| 1.5 1.6\n0 ||| the ||| lamp ||| 2 0\n\n2 ||| light ||| 3 -1\n"
ONE: list[Candidate] = [(0, "a", {"score": -1.0}, -1.0)]
HINT = "give --kbest-format nematus"

# name: (content, options, hypotheses, parts of the warnings)
LISTS: dict[str, tuple[str, str, list[Candidate], list[str]]] = {
    "fairseq": (GENERATE, "", GENERATED,
        ["3 x line that is no output of fairseq (logging), skipped, first at list:1",
        "1 x sentences in the order of batches, sorted by id, first at list:12"]),
    "fairseq with progress bars": (GENERATE.replace("S-0", "\r 50%|#| 1/2\rS-0").replace(
        "H-1\t-0.75", "50%|#| 1/2 [00:01<00:01,  1.00s/it]H-1\t-0.75"), "", GENERATED, []),
    "fairseq interactive": (
        "S-0\tlicht\nW-0\t0.016\tseconds\nC-0\tx\nH-0\t-1\tlight\nP-0\t-1 -1\nI-0\t3\n", "",
        [(0, "light", {"logprob": -2 * LN2, "score": -LN2}, -LN2)], []),
    "fairseq of old versions without ids": (
        "O\teins\nH\t-1\tone\nP\t-1 -1\nO\tzwei\nH\t-1\ttwo\nP\t-1 -2\n", "",
        [(0, "one", {"logprob": -2 * LN2, "score": -LN2}, -LN2),
        (1, "two", {"logprob": -3 * LN2, "score": -LN2}, -LN2)], []),
    "fairseq without scores of tokens": ("H-0\t-0.5\ta\nH-0\t-1\tb\n", "",
        [(0, "a", {"score": -0.5 * LN2}, -0.5 * LN2), (0, "b", {"score": -LN2}, -LN2)],
        ["2 x hypothesis without P- lines"]),
    "fairseq clipped": ("H-0\t-inf\ta\nP-0\t-inf -1\n", "--clip-inf 100",
        [(0, "a", {"logprob": -101 * LN2, "score": -100 * LN2}, -100 * LN2)],
        ["2 x infinite number, clipped, first at list:"]),
    "flat with scores": ("a\nb\nc ||| d\n\n", "--kbest-format flat:2 --kbest-scores scores",
        [(0, "a", {"F0": 1, "F1": -2}, None), (0, "b", {"F0": 3, "F1": -4}, None),
        (1, "c ||| d", {"F0": 5, "F1": -6}, None)],
        ["1 x blank line that fills up a list, skipped, first at list:4"]),
    "flat without scores": ("a\nb\n", "--kbest-format flat:2", [(0, "a", {}, None),
        (0, "b", {}, None)], []),
    "flat with an empty hypothesis that has scores": ("a\n\n",
        "--kbest-format flat:2 --kbest-scores two", [(0, "a", {"F0": 1}, None),
        (0, "", {"F0": 2}, None)], ["1 x empty hypothesis, first at list:2"]),
    **{f"flat, {name}": (content, "--kbest-format flat:2", [(0, "a b", {"F0": -1.5}, None),
        (0, "c", {"F0": -2}, None)], ["read as features F0, F1"]) for name, content in (
        ("numbers behind", "a b\t-1.5\nc\t-2\n"), ("before", "-1.5 \t a b\n-2\tc\n"),
        ("with bars", "-1.5 ||| a b\n-2 ||| c\n"),
        ("with alignments, too", "-1.5 ||| a b ||| 0-0 1-1\n-2 ||| c ||| 0-0\n"))},
    "flat with several numbers": ("a\t1 2\t-3\nb ||| 4\t5 6\t-7\n\t8 9\t0\n\n",
        "--kbest-format flat:2",
        [(t, text, {"F0": x, "F1": y, "F2": z}, None) for t, text, x, y, z in ((0, "a", 1, 2, -3),
        (0, "b ||| 4", 5, 6, -7), (1, "", 8, 9, 0))], ["1 x blank line that fills up a list"]),
    **{f"tabs with numbers {name}": (content, "--kbest-format tabs",
        [(0, "a", {"F0": -1}, None), (0, "b", {"F0": -2}, None), (1, "7", {"F0": -3}, None)],
        ["scores beside the hypotheses"]) for name, content in (("beside", "a\t-1\tb\t-2\n7\t-3\n"),
        ("behind", "a\tb\t-1\t-2\n7\t-3\n"), ("before", "-1\t-2\ta\tb\n-3\t7\n"))},
    **{f"{name} with a TAB in a text": (content, options, [(0, "a b", {}, None)],
        ["1 x TAB inside a text, read as a space, first at list:"]) for name, content, options in (
        ("flat", "a\tb\n", "--kbest-format flat:1"), ("jsonl", '{"hyps": ["a\\tb"]}', ""),
        ("mbr-nmt", "NC=1\na\tb\n", ""))},
    "portage": ("the lamp\na lamp\n", "--kbest-format portage:2 --kbest-scores ffvals",
        [(0, "the lamp", {"F0": -8, "F1": -34.5}, None), (0, "a lamp", {"F0": 0, "F1": -36}, None)],
        []),
    "tabs": ("a lamp\tthe lamp ||| x\nit\n\t\na\t\tb\n", "--kbest-format tabs",
        [*((0, text, dict[str, float](), None) for text in ("a lamp", "the lamp ||| x")),
        *((t, text, {}, None) for t, text in ((1, "it"), (2, ""), (3, "a"), (3, "b")))],
        ["2 x blank hypothesis between TABs, skipped, first at list:3"]),
    "mbr-nmt": ("NC=2\na lamp\n\nNC=1\nNC=3\n", "", [(0, "a lamp", {}, None), (0, "", {}, None),
        (1, "NC=3", {}, None)], []),
    "mbr-nmt with numbers": ("NC=2\na b\t-1\nc\t-2\n", "", [(0, "a b", {"F0": -1}, None),
        (0, "c", {"F0": -2}, None)], ["scores beside the hypotheses"]),
    "mlm-scoring": (json.dumps(UTTERANCES), "", SPOKEN, []),
    "cdec": (CDEC, "", [(0, "a lamp", {"LM": -3.5, "PhraseModel0": 1, "Glue": 0}, -2),
        (0, "lamp", {"LM": -4, "PhraseModel0": 0, "Glue": 2}, -3)],
        ["2 x hypothesis without some of the features, read as 0, first at list:1"]),
    "joshua": (JOSHUA, "", [(0, "a lamp", {"tmpt0": -1, "lm0": -3.5, "WordPenalty": 0}, -2),
        (0, "lamp", {"tmpt0": -2, "lm0": -4, "WordPenalty": -1}, -3)],
        ["1 x hypothesis without some of the features, read as 0"]),
    "joshua with alignments and trees": (JOSHUA.replace("\n", " ||| 0-0 ||| (X ||| a)\n"), "",
        [(0, "a lamp", {"tmpt0": -1, "lm0": -3.5, "WordPenalty": 0}, -2),
        (0, "lamp", {"tmpt0": -2, "lm0": -4, "WordPenalty": -1}, -3)], []),
    "cdec of very many features": ("".join(f"0 ||| a{k} ||| LM=-{k} "
        f"{' '.join(f'R{k}x{i}=1' for i in range(600))} ||| -{k}\n" for k in (1, 2)), "",
        [(0, f"a{k}", {"LM": -k} | {f"R{k}x{i}_": 1 for i in range(600)}, -k) for k in (1, 2)],
        ["1 x many features (more than 1,000)", "R1x0 as R1x0_;"]),
    "travatar without features": ("0 ||| a ||| -2 ||| \n0 ||| b ||| -3 ||| \n", "",
        [(0, "a", {}, -2), (0, "b", {}, -3)], []),
    "travatar": (TRAVATAR, "", [(0, "a lamp", {"egfp": -1, "lm": -3.5, "word": 0}, -2),
        (0, "lamp", {"egfp": 0, "lm": -4, "word": 1}, -3)],
        ["2 x hypothesis without some of the features, read as 0"]),
    "nematus": (NEMATUS, "--kbest-format nematus", [(0, "a lamp", {"F0": -1.5, "F1": -1.6}, None),
        (0, "the ||| lamp", {"F0": -2, "F1": 0}, None), (2, "light", {"F0": -3, "F1": 1}, None)],
        ["1 x blank line, skipped, first at list:3"]),
    "sockeye": (SOCKEYE, "", [(0, "a lamp", {"logprob": -1.5}, -1.5),
        (0, "the lamp", {"logprob": -1.75}, -1.75), (1, "light", {"logprob": -0.5}, -0.5)], []),
    "sockeye with factors": (
        '{"sentence_id": "a", "translation": "x", "translations": ["x"], "scores": [[1, 2, 3]]}',
        "", [(0, "x", {"logprob": -1.0, "factor1": -2.0, "factor2": -3.0}, -1)], []),
    "sockeye, one translation before several": (SINGLE + SEVERAL, "",
        [(0, "x", {"logprob": -4, "factor1": -5}, -4), (1, "y", {"logprob": -1, "factor1": -2}, -1),
        (1, "z", {"logprob": -3, "factor1": -4}, -3)], []),
    "sockeye, several translations before one": (SEVERAL + SINGLE, "",
        [(0, "y", {"logprob": -1, "factor1": -2}, -1), (0, "z", {"logprob": -3, "factor1": -4}, -3),
        (1, "x", {"logprob": -4, "factor1": -5}, -4)], []),
    "sockeye with what it does not translate": (
        '{"sentence_id": 1, "translation": "a", "score": -Infinity}\n'
        '{"sentence_id": 2, "translation": "", "score": -Infinity}\n'
        '{"sentence_id": 3, "translation": "b", "score": 1}', "--clip-inf 9",
        [(0, "a", {"logprob": -9}, -9), (2, "b", {"logprob": -1}, -1)],
        ["without hypotheses (ids 1)", "2 x infinite number, clipped"]),
    "sockeye with an object left out": (
        SOCKEYE.replace("2", "3"), "", [(0, "a lamp", {"logprob": -1.5}, -1.5),
        (0, "the lamp", {"logprob": -1.75}, -1.75), (1, "light", {"logprob": -0.5}, -0.5)],
        ["1 x sentence_id that does not rise by 1"]),
    "sockeye with a line end in a text": (
        '{"sentence_id": 1, "translation": "a\\n b\\n", "score": 1}', "",
        [(0, "a b", {"logprob": -1}, -1)],
        ["1 x line end inside a text, read as a space, first at list:1"]),
    "jsonl": (JSON_LINES, "", [(0, "light", {"lp": -2, "TM0": [1, 2]}, -1),
        (0, "lights", {"lp": -5, "TM0": [3, 4], "t_a": 1}, -3),
        (2, "y", {"lp": 1, "TM0": [2, 3]}, 0)], ["source line without hypotheses (ids 1)"]),
    "jsonl with names that Moses does not read": (
        '{"candidates": [{"text": "a", "features": {"lm_score": 1, "2nd": 2}}]}', "",
        [(0, "a", {"lmscore": 1, "F2nd": 2}, None)],
        ["2 x feature renamed to letters and digits: lm_score → lmscore, 2nd → F2nd, first at l"]),
    "jsonl with features in another order": (
        '{"candidates": [{"text": "a", "features": {"x": 1, "y": 2}}]}\n'
        '{"candidates": [{"text": "b", "features": {"y": 3, "x": 4}},'
        ' {"text": "c", "features": {"y": 5, "x": 6}}]}\n', "", [(0, "a", {"x": 1, "y": 2}, None),
        (1, "b", {"x": 4, "y": 3}, None), (1, "c", {"x": 6, "y": 5}, None)], []),
    "jsonl with ids": ('{"id": 1, "candidates": ["a"]}\n\n{"id": 3, "candidates": ["b"]}\n', "",
        [(1, "a", {}, None), (3, "b", {}, None)], ["1 x blank line, skipped, first at list:2"]),
    "jsonl with names for ids": (
        '{"id": "x", "candidates": ["a"]}\n{"id": "y", "candidates": ["b"]}\n', "",
        [("x", "a", {}, None), ("y", "b", {}, None)], []),
    "jsonl with texts that end in numbers for ids": (
        '{"custom_id": "s-2", "hyps": ["c"]}\n{"custom_id": "s-0", "id": "x", "hyps": ["a"]}\n',
        "", [("x", "a", {}, None), (2, "c", {}, None)],
        ["sentences in the order of batches", "source line without hypotheses (ids 1)", "!not r"]),
    "jsonl with ids that begin anew in each document": (
        "".join(f'{{"doc": "{d}", "segment_id": {n}, "n_best": ["{d}{n}"]}}\n' for d,
        n in ("a0", "a1", "b0", "b2", "c1")), "", [(t, text, {}, None) for t,
        text in ((0, "a0"), (1, "a1"), (2, "b0"), (4, "b2"), (6, "c1"))],
        ["source line without hypotheses (ids 3, 5)"]),
    "jsonl with documents whose objects stand apart": (
        "".join(f'{{"doc": "{d}", "segment_id": {n}, "n_best": ["{d}{n}"]}}\n' for d,
        n in ("b0", "a1", "b1", "a0")), "", [(t, text, {}, None) for t,
        text in enumerate(("b0", "b1", "a0", "a1"))], ["objects of a document that stand apart"]),
    "jsonl with an object a candidate": (
        "".join(f'{{"id": "{n}", "hyp": "{text}", "score": "{s}"}}\n' for n,
        text, s in ((7, "a", -1), (8, "b", -2), (7, "c", -3))), "--first-id 7", [(str(t), text,
        {"score": s}, s) for t, text, s in ((7, "a", -1), (7, "c", -3), (8, "b", -2))], []),
    "jsonl with an object a sample": (
        "".join(f'{{"document": "{d}", "segment": {n}, "sample_id": {k}, "hyp": "{d}{n}{k}"}}\n'
        for d, n, k in ("a00", "a01", "a10", "a11", "b00", "b01")), "", [(t, text, {}, None) for t,
        text in ((0, "a00"), (0, "a01"), (1, "a10"), (1, "a11"), (2, "b00"), (2, "b01"))],
        ["!further id"]),
    **{
        f"jsonl with ids at {key}": (
            "".join(f'{{"doc": "{d}", "{key}": {n}, "hyp": "{d}{n}{k}"}}\n'
            for d, n, k in ("a00", "a01", "a10", "b00", "b01")), "", [(t, text, {}, None) for t,
            text in ((0, "a00"), (0, "a01"), (1, "a10"), (2, "b00"), (2, "b01"))],
            ["!without an id", "!further id"])
        for key in ("sent", "sentence")
    },
    "jsonl with texts of sources that end in numbers as sentences": (
        '{"sentence": "in 1990", "candidates": ["a"]}\n'
        '{"sentence": "in 1980", "candidates": ["b"]}\n', "",
        [(t, text, {}, None) for t, text in enumerate("ab")], []),
    "jsonl with samples of one source, without ids": (
        "".join(f'{{"src": "{s}", "hyp": "{s}{k}"}}\n' for s in "xyyz" for k in range(3)), "",
        [(t, f"{s}{t % 3}", {}, None) for t, s in enumerate("xxxyyyyyyzzz")],
        ["12 x object of one candidate without an id, read as a sentence; give"]),
    "jsonl with texts of sources as segments": (
        '{"segment": "x", "candidates": ["a"]}\n{"segment": "x", "candidates": ["b"]}\n', "",
        [(t, text, {}, None) for t, text in enumerate("ab")], []),
    "jsonl with one text an object": ('{"prompt": "x", "response": "a", "context": [1]}\n' * 2, "",
        [(t, "a", {}, None) for t in (0, 1)], ["2 x object of one candidate without an id"]),
    "jsonl of requests of which some failed": (
        '{"custom_id": "1", "response": null, "error": {"code": 3}}\n'
        '{"custom_id": "0", "result": {"type": "succeeded", "message": {"role": "assistant", '
        '"content": [{"type": "thinking", "thinking": "?"}, {"type": "text", "text": "a"}]}}}\n',
        "", [(0, "a", {}, None)], ["1 x answer without candidates", "(ids 1)"]),
    "jsonl with candidates by their index": (
        '{"choices": [{"index": 1, "message": {"content": null}}, '
        '{"index": 0, "message": {"content": [{"type": "text", "text": "a"}]}}]}', "",
        [(0, "a", {}, None), (0, "", {}, None)], ["1 x empty hypothesis"]),
    "jsonl with texts in columns": ('{"hyp_10": "b", "hyp_2": "a", "src": "x"}', "",
        [(0, "a", {}, None), (0, "b", {}, None)], []),
    "jsonl with several numbers beside": (
        '{"texts": [["▁a", "b"], ["c", "d"]], "scores": {"x": [[1], "2"], "y": [3, 4]}}', "",
        [(0, "ab", {"x": 1, "y": 3}, None), (0, "c d", {"x": 2, "y": 4}, None)],
        ["2 x list of words or subwords, joined"]),
    **{
        f"jsonl as of {tool}": (line, "", ONE, [])
        for tool, line in {
            "this program": '{"candidates": [{"text": "a", "score": -1}]}',
            "lists beside": '{"translations": ["a"], "scores": [-1]}',
            "vLLM": '{"prompt": "x", "outputs": [{"text": "a", "cumulative_logprob": -1}]}',
            "hypotheses": '{"src": "x", "hypotheses": [{"hypothesis": "a", "logprob": -1}]}',
            "chats": '{"choices": [{"message": {"role": "b", "content": "a"}, "score": -1}]}',
            "transformers": '{"predictions": ["a"], "sequences_scores": [-1]}',
            "pairs": '{"nbest": [["a", -1]]}',
            "pairs, the number first": '{"id": 0.0, "prompt": [], "nbest": [[-1, "a"]]}',
            "estimation of quality": '{"src": "x", "mt": "a", "id": 0, "score": -1}',
            "llama.cpp": '{"index": 0, "content": "a", "stop": true, "completion_probabilities": '
            '[{"token": "a", "logprob": -0.25}, {"token": "", "logprob": -0.75}]}',
            "objects beside": '{"candidates": [{"text": "a"}], "score": [["-1"]]}',
            "completions": '{"choices": [{"text": "a", "logprobs": {"token_logprobs": '
            "[null, -0.25, -0.75]}}]}",
            "text-generation-inference": '{"generated_text": "a", "details": {"tokens": '
            '[{"logprob": -1}], "best_of_sequences": []}}',
            "Gemini": '{"key": "s-0", "response": {"candidates": [{"avgLogprobs": -1, "content": '
            '{"parts": [{"text": "a"}]}}]}}',
            "pipelines": '{"generations": [{"generated_text": "a", "log_prob": -1}]}',
        }.items()
    },
    "moses": ("7 ||| a b  ||| d0= 0 -1.5 LM0= -38.1 ||| -3.25\n8 ||| c ||| LM0= 3 d0= 1 2 ||| 0",
        "--first-id 7", [(7, "a b", {"d0": [0, -1.5], "LM0": -38.1}, -3.25),
        (8, "c", {"d0": [1, 2], "LM0": 3}, 0)], []),
    "moses with old labels": ("0 ||| a ||| d: 0 -3 lm: -41 -40 w: -9 ||| -14", "",
        [(0, "a", {"d": [0, -3], "lm": [-41, -40], "w": -9}, -14)],
        ["1 x old Moses labels, as in 'lm: -3.2', first at list:1"]),
    "moses without a blank after the id, as in the extractor's tests": (
        "0||| a  ||| lm= -41 w= -9 ||| -14", "", [(0, "a", {"lm": -41, "w": -9}, -14)],
        ["without blanks"]),
    "moses without labels": ("0 ||| a ||| 1 2 -3 ||| -14", "",
        [(0, "a", {"F0": 1, "F1": 2, "F2": -3}, -14)], ["without labels"]),
    "moses without labels that looks like costs": ("0 ||| a ||| 1.5 1.6\n\n0 ||| b ||| 2 3 ", "",
        [(0, "a", {"F0": 1.5, "F1": 1.6}, None), (0, "b", {"F0": 2, "F1": 3}, None)],
        ["2 x hypothesis with numbers without labels, positive in all of the list", HINT]),
    "moses without labels with a negative number": ("0 ||| a ||| 1.5 ||| 2\n0 ||| b ||| -3 ||| 2",
        "", [(0, "a", {"F0": 1.5}, 2), (0, "b", {"F0": -3}, 2)], [f"!{HINT}"]),
    "moses without labels with a zero": ("0 ||| a ||| 1.5 ||| 2\n0 ||| b ||| 0 ||| 2", "",
        [(0, "a", {"F0": 1.5}, 2), (0, "b", {"F0": 0}, 2)], [f"!{HINT}"]),
    "marian without score breakdown": ("0 ||| a ||| F0=-1.5 F1=2 ||| -14", "",
        [(0, "a", {"F0": -1.5, "F1": 2}, -14)], ["no blank between label and value"]),
    "marian of old versions": ("0 ||| a ||| F0= -1.5 WordScores= -1 -.5 ||| -14", "",
        [(0, "a", {"F0": -1.5}, -14)], ["word scores"]),
    "marian with columns between text and features": (
        "0 ||| a ||| 0-0 1-1 ||| WordScores= -1 -2 ||| F0= -3 ||| -3", "",
        [(0, "a", {"F0": -3}, -3)], []),
    "marian with a soft alignment": ("0 ||| a b ||| 0.9,0.1 .2,8e-1 ||| F0= -3 ||| -3", "",
        [(0, "a b", {"F0": -3}, -3)], []),
    "marian rescored, with a feature behind the alignment": (
        "0 ||| a ||| 0-0 1-1 R2L= -2 ||| F0= -3 ||| -3", "", [(0, "a", {"R2L": -2, "F0": -3}, -3)],
        []),
    "moses with TABs around the bars": ("0\t|||\ta b\t|||\tA= 1\t|||\t-1", "",
        [(0, "a b", {"A": 1}, -1)], []),
    "moses with numbers after the total": ("0 ||| a ||| A= 1 ||| -1 ||| -2", "",
        [(0, "a", {"A": 1}, -1)], ["column of numbers after features and total, not read"]),
    "moses without totals": ("0 ||| a ||| LM0= 1 ||| 3\n\n0 ||| b ||| LM0= 2", "",
        [(0, "a", {"LM0": 1}, None), (0, "b", {"LM0": 2}, None)],
        ["1 x no total column, first at list:3"]),
    "moses with a label that comes again": ("0 ||| a ||| LM0= 1 TM0= 2 LM0= 3 ||| 1", "",
        [(0, "a", {"LM0": [1, 3], "TM0": 2}, 1)], []),
    "moses with a dense value after a sparse one": ("0 ||| a ||| LM0= 1 x_y= 4 2 ||| 1", "",
        [(0, "a", {"LM0": [1, 2], "x_y": 4}, 1)], []),
    "moses with sparse features": (
        "0 ||| a ||| A= 1 ||| 0\n0 ||| b ||| tag_a=b= 5 A= 3 tag_:=.5 ||| 0", "",
        [(0, "a", {"A": 1}, 0), (0, "b", {"A": 3, "tag_a=b": 5, "tag_:": 0.5}, 0)],
        ["1 x line with sparse features (labels with '_'), first at list:2"]),
    "moses without features": ("0 ||| a |||  ||| -14", "", [(0, "a", {}, -14)], []),
    "moses with further columns": (
        "0 ||| a ||| LM0= 1 ||| -3 ||| 0-1=0-2 ||| 0-0 1-1  ||| tree= 1", "",
        [(0, "a", {"LM0": 1}, -3)], []),
    "moses with a column that not all lines have": (
        "0 ||| a ||| LM0= 1 ||| -3\n0 ||| b ||| LM0= 2 ||| -4 ||| 0-0", "",
        [(0, "a", {"LM0": 1}, -3), (0, "b", {"LM0": 2}, -4)], []),
    "moses with names of other letters": ("0 ||| a |||  4gram= 1 lm_= 2 ||| -3", "",
        [(0, "a", {"4gram": 1, "lm_": 2}, -3)], []),
    "moses with bars in a text": ("0 ||| x ||| A= 0 ||| 0\n0 ||| a ||| b |||| c ||| A= 1 ||| 0",
        "", [(0, "x", {"A": 0}, 0), (0, "a ||| b |||| c", {"A": 1}, 0)],
        ["1 x hypothesis that contains '|||', kept"]),
    "moses with leading zeros of an id": (f"{'0' * 5000}1 ||| a ||| A= 1 ||| 0", "--first-id 1",
        [(1, "a", {"A": 1}, 0)], []),
    "moses with an empty text": ("0 |||||| A= 1 ||| 0", "", [(0, "", {"A": 1}, 0)],
        ["1 x empty hypothesis, first at list:1"]),
    "moses clipped": ("0 ||| a ||| A= 1 B= 2 3 ||| 1\n0 ||| b ||| A= -inf B= 1e999 3 ||| inf",
        "--clip-inf 1e4", [(0, "a", {"A": 1, "B": [2, 3]}, 1),
        (0, "b", {"A": -1e4, "B": [1e4, 3]}, 1e4)],
        ["3 x infinite number, clipped, first at list:2"]),
    "an interleaved list": ("".join(f"{t} ||| w{k} ||| A= {k} ||| 0\n" for k,
        t in enumerate((1, 0, 1, 0))), "--no-docs one", [(t, f"w{k}", {"A": k}, 0) for t,
        k in ((0, 1), (0, 3), (1, 0), (1, 2))],
        ["2 x interleaved ids, grouped by sentence, first at list:2"]),
    "only the first candidates": (
        "".join(f"{k // 3} ||| w{k} ||| A= {k} ||| 0\n" for k in range(5)), "--top 2 --max-k 2",
        [(k // 3, f"w{k}", {"A": k}, 0) for k in (0, 1, 3, 4)], []),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_each_format_has_these_hypotheses(name: str, world: World) -> None:
    content, options, expected, warnings = LISTS[name]
    world.write("list", content)
    for file, scores in (("scores", "1\t-2\n3 -4\n5 -6\n\n"), ("two", "1\n2\n")):
        world.write(file, scores)
    world.write("ffvals", "-8\t-34.5\n0\t-36\n")
    run = world.ok(f"convert --kbest list --to jsonl {options}")
    found: list[Candidate] = []
    for one in map(json.loads, run.lines):
        for candidate in one["candidates"]:
            features = {**candidate.get("features", {}), **candidate.get("sparse", {})}
            found.append((one["id"], candidate["text"], features, candidate.get("score")))
    assert [one[:2] for one in found] == [one[:2] for one in expected]
    for (*_, features, total), (*_, values, sum_) in zip(found, expected, strict=True):
        assert features == {k: pytest.approx(v, rel=1e-15) for k, v in values.items()}
        assert total == (None if sum_ is None else pytest.approx(sum_, rel=1e-15))
    for part in warnings:
        assert (part.removeprefix("!") in run.err) != part.startswith("!"), run.err
    named = re.search("--kbest-format ([a-z]*)", options)
    kinds = {"marian": "moses", "an": "moses", "only": "moses"}
    format_name = named[1] if named else re.split("[ ,]", name)[0]
    assert f"read as {kinds.get(format_name, format_name)}, written as jsonl" in run.err


NOT_READ = {  # lists with keys that are not read, or whose ids are not those of sentences
    '{"texts": ["a", "b"], "scores": [-1, -2], "x": [0.5, 0]}': "list of numbers .*: x; to have it",
    '{"hyps": [{"text": "a", "score": 1, "x": "2.5", "y": 3}]}': "number of cand.*: x; to have it",
    '{"hyps": [{"text": "a", "m": {"x": 0.5, "y": 2}}]}': "number of candidates .*: m; to have it",
    '{"texts": ["a", "b"], "m": {"n": {"x": [0.5, 0]}}}': "list of numbers .*: m; to have it",
    '{"hyps": [{"text": "a", "m": {"n": {"x": 0.5, "y": 2}}}]}': "number of cand.*: m; to have it",
    '{"response": "a"}\n{"response": "b"}': "2 x object of one candidate without an id",
    "".join(
        f'{{"hyp": "{text}", "id": {n}, "sentence_id": {t}}}\n'
        for n, text, t in ((0, "a", 0), (1, "b", 0), (2, "c", 1))
    ): "further id, not read, .*: sentence_id; .* at the key custom_id",
    "".join(f'{{"id": 0, "src": "{x}", "hyps": ["{x}"]}}\n' for x in "ab"): (
        "one source for each id"
    ),
    "".join(
        f'{{"id": {n}, "doc": "{d}", "hyp": "{d}"}}\n' for n, d in ((0, "x"), ('"s-0"', "y"))
    ): "list:2: expected one document for each id, .* number the sentences anew",
    **{  # documents at keys that are not known
        "".join(
            f'{{{key % d}, "id": {n}, "hyps": ["{d}"]}}\n' for d, n in ((7, 0), (7, 1), (8, 0))
        ): f"list:3: expected one '{name}' for each id, .* at the key document"
        for key, name in (
            ('"talk": "%s"', "talk"),
            ('"chapter_id": %s', "chapter_id"),
            ('"meta": {"article": "%s"}', "meta.article"),
            ('"english": "%s"', "english"),
        )
    },
    **{  # ids of samples: their first candidates are alike
        "".join(
            f'{{"custom_id": "{form % (n, k)}", "hyp": "{text}{k}"}}\n'
            for n, text in enumerate(("the lamp", "he reads"))
            for k in (0, 1)
        ): "id with a part that seems to name a sample"
        for form in ("%d_%d", "req-%d-sample-%d", "doc1/seg%d/sample%d", "%d-t0.%d")
    },
    '{"id": 0, "ref": "x", "hyps": ["a"]}': "reference in a list.*: ref; give --ref",
}


@pytest.mark.parametrize("content", NOT_READ)
def test_what_is_not_read_of_json_is_named(content: str, world: World) -> None:
    world.write("list", content)
    assert re.search(NOT_READ[content], world.run("convert --kbest list --to moses").err)


EXAMPLES = """\
sockeye: {"score": 1.5, "sentence_id": 1, "translation": "x"}
jsonl: {"candidates": [{"text": "x", "score": -1.5}]}
cdec: 0 ||| x ||| LanguageModel=-38.1 PhraseModel_0=1.5 ||| -12.6
joshua: 0 ||| x ||| tm_pt_0=-1.5 lm_0=-38.1 ||| -12.6
travatar: 0 ||| x ||| -12.6 ||| egfp=-4.2 lm=-38.1
moses: 0 ||| x ||| F0=-1.5 F1=2 ||| -1
moses: 0 ||| x ||| LM0= -1.5 tag_a= 2 ||| -1
moses: 0 ||| x ||| d: 1 lm: 2 ||| -1
moses: 0 ||| x ||| 1 2 3 ||| -1
moses: 0 ||| x ||| LM0= -1 ||| -1 ||| 0-0 ||| x=1
"""


@pytest.mark.parametrize("line", EXAMPLES.splitlines())
def test_lists_that_look_alike_are_told_apart(line: str, world: World) -> None:
    name, _, content = line.partition(": ")
    world.write("list", f"\n{content}\n{content}\n")
    assert f"read as {name}, written" in world.run("convert --kbest list --to first").err


@pytest.mark.parametrize(("content", "sentences"), [
    ("S-0\ts\nH-0\t-1\tx\nS-1\ts\nS-2\ts\n", 3),
    ("O\ts\nH\t-1\tx\nO\ts\n", 2),
    ('{"candidates": ["x"]}\n\n{"candidates": []}\n{"candidates": [ ]}\n', 3),
    ('{"id": 3, "candidates": ["x"]}\n{"id": 7, "candidates": []}\n', 8),
    ('{"sentence_id": 1, "translation": "x", "score": 1}\n'
        '{"sentence_id": 2, "translations": [], "scores": []}\n', 2),
    ("NC=1\nx\nNC=0\nNC=0\n", 3),
    ('{"a": {"ref": "x", "hyp_1": {"score": 1, "text": "x"}}, "b": {"ref": "y"}}', 2),
], ids=["fairseq", "interactive", "jsonl", "ids", "sockeye", "mbr-nmt", "mlm-scoring"])  # fmt: skip
def test_last_sentences_without_any_count(content: str, sentences: int, world: World) -> None:
    world.write("list", content)
    run = world.ok("first --kbest list")
    assert len(run.lines) == sentences
    assert "source line without hypotheses" in run.err


@pytest.mark.parametrize(("content", "sources", "documents"), [
    (GENERATE, ["licht", "die lampe"], None),
    ('{"sentence_id": 1, "translation": "x", "score": 1, "doc_id": 7, "source": "y"}\n', ["y"],
        ["7"]),
    (JSON_LINES.replace('"e", ', '"e", "src": "s", '), ["licht", "x", "s"], ["d", "d", "e"]),
], ids=["fairseq", "sockeye", "jsonl"])  # fmt: skip
def test_documents_and_sources_of_a_list_are_written_beside(
    content: str, sources: list[str], documents: list[str] | None, world: World
) -> None:
    world.write("list", content)
    ids = "--docs-out ids" if documents else ""
    world.ok(f"convert --kbest list --to moses --out out --source-out sources {ids}")
    assert world.lines("sources") == sources
    assert documents is None or world.lines("ids") == documents


@pytest.mark.parametrize(
    "content",
    [JSON_LINES, "S-0\tx\nH-0\t-1\ta\nH-0\t-2\tb\nH-1\t-1\tc\n"],
    ids=["jsonl", "fairseq"],
)
def test_sources_that_some_sentences_lack_are_none(content: str, world: World) -> None:
    world.write("list", content)
    assert len(world.ok("convert --kbest list --to jsonl").lines) > 1
    refused = world.refused("convert --kbest list --to moses --source-out sources --out out")
    assert "no sources of all its sentences" in refused


def test_scores_of_other_tools_go_to_hypotheses_in_the_order_of_the_file(world: World) -> None:
    world.write("list", "H-1\t-1\ta\nP-1\t-1\nH-0\t-1\tb\nP-0\t-1\n")
    world.write("qe", "10\n20\n")
    lines = world.ok("score --kbest list --no-docs each --scores qe=qe").lines
    expected = [("b", "20"), ("a", "10")]
    assert [(one.split()[2], one.split("qe= ")[1].split()[0]) for one in lines] == expected


def test_a_line_of_several_chunks_is_one_line(world: World) -> None:
    text = "字 " * 400_000  # 1.6 MB
    world.write("list", f"0 ||| {text}||| A= 1 ||| 0\n0 ||| b ||| A= 2 ||| 0\n")
    assert world.ok("convert --kbest list --to moses").out == world.text("list")


def test_empty_and_repeated_hypotheses_are_counted_list_by_list(world: World) -> None:
    texts = [(0, "a"), (0, "b"), (0, "a"), (0, ""), (0, ""), (0, "a"), (1, "a")]
    world.write("list", [f"{t} ||| {text} ||| A= 1 ||| 0" for t, text in texts])
    said = world.ok("first --kbest list").err
    assert "2 x empty hypothesis, first at list:4" in said
    assert "3 x duplicate hypothesis, kept, first at list:3" in said


def test_of_an_output_of_all_sentences_the_ids_without_hypotheses_are_named(world: World) -> None:
    world.write("list", "2 ||| a ||| A= 1 ||| 0\n2 ||| b ||| A= 1 ||| 0\n")
    world.write("docs", "a\n" * 9)
    said = world.ok("first --kbest list --docs docs").err
    assert "8 x source line without hypotheses (ids 0, 1, 3, 4, 5, …), first at list" in said


HOSTILE = {
    "brackets": "[" * 1_000_000,
    "name-of-a-feature": f"0 ||| a ||| {'F' * 1_000_000}= 1 ||| 1",
    "equals-signs": f"0 ||| a ||| {'= ' * 1_000_000}||| 1",
    "columns": "a\t" * 20_000,
    "id": json.dumps({"id": "x" * 1_000_000, "candidates": [{"text": "a"}, {"text": "b"}]}),
}


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE)
def test_hostile_lines_are_read_in_linear_time(line: str, world: World) -> None:
    """Patterns and tables of columns that are tried at each of their positions would take hours."""
    world.write("k", f"{line}\n")
    assert world.run("check --kbest k --no-docs one").exit in (0, 3)


def test_a_format_is_recognised_after_a_thousand_blank_lines(world: World) -> None:
    world.write("list", "\n" * 1000 + "0 ||| a ||| A= 1 ||| 0\n")
    assert world.ok("first --kbest list").lines == ["a"]
