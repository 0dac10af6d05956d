from pathlib import Path

path = Path("dev.ref")
path.write_bytes(path.read_bytes().decode().encode("utf-16"))
