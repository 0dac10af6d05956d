import gzip
from pathlib import Path

line = b"evening\t0\t-\t0\t1.5" + b" " * (1 << 22) + b"\n"
content = b"evening\t0\t-\t0\t1.5\n" + line * 8
Path("dev.pairs").write_bytes(gzip.compress(content, compresslevel=1, mtime=0))
