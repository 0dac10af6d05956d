from pathlib import Path

path = Path("w.ini")
path.write_bytes(b"# caf\xe9\n" + path.read_bytes())
