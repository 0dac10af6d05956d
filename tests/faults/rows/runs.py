"""Runs of several processes, and the score cache."""

from support.faults import Fault, Model, table

FILES = "--kbest dev.kbest --docs dev.docs"
DECODE = f"decode {FILES} --weights w.ini --default-weight 0.5 --out -"
D = f"{DECODE} --lm lm=lm"
MODEL = {"lm": Model("codclm")}
IDS, SHARED = (b"evening\nevening\ntown\ntown\n", "several processes cannot share standard input; name")
PIPED = D.replace("dev.docs", "-")
OF_TWO = {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "2", "RANK": "0"}
LOST = r"shard 1/2: score cache not written.*are lost"
TRAIN = "train-lm --model rnnlm --train - --valid base.txt --out lm"
FAULTS = table(
    f"""
87-shard-beyond-the-last | {D} --shard 5/4 | expected I/N with I from 1 to N, as 1/4 | {D} --shard 2/3
87-shard-word | {D} --shard a/b | --shard | {D} --shard 2/3
87-shard-without-cache | {D} --shard 1/2 --no-cache | leave out --no-cache, or name | {D}
87-shard-and-ray | {D} --shard 1/2 --ray local | both share out .*; take one | {D}
87-shard-of-nothing | {DECODE} --shard 1/2 | nothing to share: .*in one process | {DECODE}
87-info-of-a-file | cache info --cache w.ini | found the file .w.ini. | cache info
87-no-such-command | cache purge | No such command 'purge' | cache clear
""",
    MODEL,
)
FAULTS += table(f"87-shard-lost | {D} --shard 1/2 --cache w.ini/x | {LOST} | {D} --cache x", MODEL, 1)
FAULTS += [
    Fault("87-shard-of-standard-input", f"{PIPED} --shard 1/2", SHARED, MODEL, 2, D, stdin=IDS),
    Fault("94-torchrun-piped", PIPED, f"torchrun: {SHARED}", MODEL, 2, None, IDS, OF_TWO),
    Fault("94-training-piped", TRAIN, SHARED, {}, 2, None, b"it is\n", OF_TWO),
    *(Fault(f"87-limit-{name}", "cache info", message, exit=2, environment={"RERANK_CACHE_GB": value})
        for name, value in (("nan", "nan"), ("zero", "0"), ("inf", "1e999")) for message in (f"found '{value}'; .* RERANK_CACHE_GB=20",)),
]  # fmt: skip
