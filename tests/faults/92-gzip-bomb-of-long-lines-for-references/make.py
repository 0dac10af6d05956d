import gzip
from pathlib import Path

line = b"x" * ((1 << 24) - 1) + b"\n"
Path("dev.ref").write_bytes(gzip.compress(line * 4, compresslevel=1, mtime=0))
