from pathlib import Path

path = Path("hyp.txt")
path.write_bytes(path.read_bytes().replace(b"it gives", b"it\rgives"))
