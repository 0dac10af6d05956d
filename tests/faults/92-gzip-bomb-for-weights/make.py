import gzip
from pathlib import Path

line = b"LM0= 0.5\n"
Path("w.ini").write_bytes(gzip.compress(line * (1 << 22), compresslevel=1, mtime=0))
