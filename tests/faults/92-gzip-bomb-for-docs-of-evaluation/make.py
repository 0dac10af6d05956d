import gzip
from pathlib import Path

Path("dev.docs").write_bytes(gzip.compress(b"town\n" * (1 << 22), compresslevel=1, mtime=0))
