import gzip
from pathlib import Path

line = b"the lamp is lit\n"
Path("dev.ref").write_bytes(gzip.compress(line * (1 << 21), compresslevel=1, mtime=0))
