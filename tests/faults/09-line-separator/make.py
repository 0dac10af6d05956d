from pathlib import Path

path = Path("hyp.txt")
path.write_bytes(
    path.read_bytes().replace(b"lamp ", "lamp\u2028".encode()).replace(b"no one", b"no\vone")
)
