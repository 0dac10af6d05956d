from pathlib import Path

path = Path("dev.kbest")
path.write_bytes(path.read_bytes() + b"3 ||| " + b"word " * (1 << 22))
