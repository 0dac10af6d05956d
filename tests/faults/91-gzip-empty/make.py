import gzip
from pathlib import Path

path = Path("dev.kbest")
packed = gzip.compress(path.read_bytes(), mtime=0)
path.write_bytes(gzip.compress(b"", mtime=0))
