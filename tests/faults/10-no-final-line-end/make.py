from pathlib import Path

path = Path("hyp.txt")
path.write_bytes(path.read_bytes().removesuffix(b"\n"))
