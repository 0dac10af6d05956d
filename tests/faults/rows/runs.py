"""Runs of several processes."""

from __future__ import annotations

from support.faults import Fault, Model

FILES = "--kbest dev.kbest --docs dev.docs"
DECODE = f"decode {FILES} --weights w.ini --default-weight 0.5 --out -"
MODEL = {"lm": Model("codclm")}
FAULTS = [
    *(
        Fault(
            f"87-shard-{name}",
            f"{DECODE} --lm lm=lm --shard {shard}",
            "--shard",
            MODEL,
            2,
            f"{DECODE} --lm lm=lm --shard 2/3",
        )
        for name, shard in (
            ("beyond-the-last", "5/4"),
            ("zero", "0/3"),
            ("word", "a/b"),
            ("of-how-many", "1"),
            ("of-three-numbers", "1/2/3"),
            ("negative", "-1/2"),
        )
    ),
    Fault(
        "87-shard-without-cache",
        f"{DECODE} --lm lm=lm --shard 1/2 --no-cache",
        "--shard 1/2: .*leave out --no-cache, or name a folder that all of them see with --cache",
        MODEL,
        2,
        f"{DECODE} --lm lm=lm --shard 1/2",
    ),
    Fault(
        "87-shard-and-ray",
        f"{DECODE} --lm lm=lm --shard 1/2 --ray local",
        "--shard 1/2 and --ray local both share out the documents; take one",
        MODEL,
        2,
        f"{DECODE} --lm lm=lm --shard 1/2",
    ),
    Fault(
        "87-shard-of-standard-input",
        f"{DECODE} --lm lm=lm --shard 1/2".replace("dev.docs", "-"),
        "--shard 1/2: several processes cannot share standard input; name files instead of -",
        MODEL,
        2,
        f"{DECODE} --lm lm=lm --shard 1/2",
        stdin=b"evening\nevening\ntown\ntown\n",
    ),
    Fault(
        "87-shard-of-nothing",
        f"{DECODE} --shard 1/2",
        "there is nothing to share: .*run it in one process",
        {},
        2,
        DECODE,
    ),
    Fault(
        "87-shard-whose-scores-are-lost",
        f"{DECODE} --lm lm=lm --shard 1/2 --cache w.ini/below",
        r"shard 1/2: score cache not written.*are lost",
        MODEL,
        1,
        f"{DECODE} --lm lm=lm --shard 1/2 --cache below",
    ),
    *(
        Fault(
            f"87-{command}-of-a-file",
            f"cache {command} --cache w.ini",
            "expected a folder, found the file 'w.ini'",
            {},
            2,
            f"cache {command} --cache none",
        )
        for command in ("info", "clear")
    ),
    Fault("87-no-such-command", "cache purge", "No such command 'purge'", {}, 2),
    *(
        Fault(
            f"87-limit-{name}",
            "cache info",
            f"found '{value}'; .* RERANK_CACHE_GB=20",
            {},
            2,
            environment={"RERANK_CACHE_GB": value},
        )
        for name, value in (
            ("nan", "nan"),
            ("zero", "0"),
            ("with-a-unit", "20 GB"),
            ("inf", "1e999"),
        )
    ),
    Fault(
        "94-torchrun-of-standard-input",
        f"{DECODE} --lm lm=lm".replace("dev.docs", "-"),
        "torchrun: several processes cannot share standard input; name files instead of -",
        MODEL,
        2,
        stdin=b"evening\nevening\ntown\ntown\n",
        environment={"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "2", "RANK": "0"},
    ),
    Fault(
        "94-training-of-torchrun-on-standard-input",
        "train-lm --model rnnlm --train - --valid base.txt --out lm",
        "several processes cannot share standard input; name files",
        {},
        2,
        stdin=b"it is\n",
        environment={"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "2", "RANK": "0"},
    ),
]
