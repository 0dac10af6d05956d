from pathlib import Path

path = Path("dev.docs")
path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
