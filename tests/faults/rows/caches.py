"""Faults of models, searches, caches and devices."""

from support.faults import (LM, RESTORED, Changes, Fault, Model, edited, model_of_pipes, strange_tensor, table)
from support.world import DECODE, TUNE

M: Changes = {"model": Model("codclm")}
CONFIG, ESCAPED = "model/config.json", r"!\x1b|\x9b|\u202e"
GIGABYTES, STRANGE = "expected RERANK_CACHE_GB to be a positive number of gigabytes, found 'lots'", "\x1b[31mdigest\x9b\u202e"
FAULTS = [
    Fault("56-control-characters-in-a-label", DECODE, (ESCAPED, r"there are: LM0, TM0, \\x1b\[31mW\\x9bP\\u202e0|WP0"),
        {"dev.kbest": lambda old: old.replace(b"WP0=", "\x1b[31mW\x9bP\u202e0=".encode())}, cure={"dev.kbest": RESTORED}),
    Fault("56-control-characters-in-a-model", LM, (ESCAPED, r"expected a vocabulary's digest, found '.x1b\[31mdigest.x9b.u202e'"),
        {**M, CONFIG: edited("vocabulary", STRANGE)}, cure=M),
    Fault("56-control-characters-in-a-tensor-name", LM, (ESCAPED, r"tensors do not fit: \\x1b\[31mname\\x9b\\u202e expected None, found \(1,\)"),
        setup=strange_tensor),
    Fault("60-model-is-a-pipe", LM, r"model/config\.json: expected a regular file, found a folder, a pipe or a device; copy", setup=model_of_pipes),
    Fault("62-model-with-other-types", LM, r"model/config\.json: not a valid model: embed is True", {**M, CONFIG: edited("config", "embed", True)}, cure=M),
    Fault("64-ngram-text-too-small", "train-ngram --train small --out m.arpa",
        r"small: expected 1-grams that occur once, .* found none that occur .*; take more text, a lower --order, or --discount-fallback",
        {"small": "a b\nb a\n"}, cure="train-ngram --train small --out m.arpa --discount-fallback"),
    Fault("69-seed-and-alpha-of-a-decoder-without", f"{DECODE} --alpha 0.5 --seed 7 --threads 1 -v", ("!warning", r"search:viterbi\|alpha:0.5\|seed:7\|"),
        exit=0),
    Fault("69-viterbi-of-unbounded-order", f"{LM} --search viterbi",
        ("--search viterbi: ", "all earlier sentences", "decoders that fit: greedy, beam, survivors"), {"model": Model("ccdclm")}, 2, f"{LM} --search beam"),
    Fault("87-cache-cannot-be-made", LM, r"warning: 1 x score cache not written: w\.ini: file exists", M, 0, environment={"RERANK_CACHE": "w.ini"}),
    Fault("87-cache-limit-too-small", LM, "warning: 2 x document with more scores than the cache may hold, not kept; raise RERANK_CACHE_GB", M, 0,
        environment={"RERANK_CACHE_GB": "1e-9"}),
    Fault("87-cache-limit-word", LM, (GIGABYTES, "RERANK_CACHE_GB=20"), M, 2, environment={"RERANK_CACHE_GB": "lots"}),
]  # fmt: skip
SMC, GIVE = "--alpha 1 --search smc", "expected a folder, found the file 'w.ini'; name another"
FAULTS += table(
    rf"""
69-mbr-for-tuning | {TUNE} --search mbr --alpha 1 | --search mbr: tune-mert tunes the path of highest score.*viterbi, beam | {TUNE} --search viterbi
69-no-scale | {DECODE} --search smc | smc works with p ∝ exp\(alpha · score\) and needs alpha.*--alpha A, or a weights file with an alpha | {DECODE} {SMC}
69-option-of-another-decoder | {DECODE} --search beam:particles=8 | beam does not use particles; it is for smc, ffbs, mbr | {DECODE} {SMC}:particles=8
82-output-is-the-model | {LM.replace("--out -", "--out model/config.json")} | output model/config.json is also the input model/config.json; name another | {LM}
82-output-in-the-model | {LM} --trace model/new | output model/new is in a folder that is an input; name another | {LM} --trace t
82-output-is-the-options | {DECODE} --config o --trace o | output o is also the input o; name another | {DECODE} --config o
87-cache-and-no-cache | {LM} --cache scores --no-cache | --cache and --no-cache exclude each other; give one of them | {LM} --no-cache
87-cache-empty | {DECODE} --cache '' | '--cache': expected a value, found an empty one; is a variable of the shell not set\? | {LM} --cache scores
87-cache-is-a-file | {LM} --cache w.ini | --cache.*{GIVE} | {LM} --cache scores
94-no-such-device | {LM} --device cuda:99 | --device cuda:99: (no CUDA device is usable here; use --device cpu|there are \d+ CUDA) | {LM} --device cpu
""",
    {**M, "o": "top = 2\n"},
)
