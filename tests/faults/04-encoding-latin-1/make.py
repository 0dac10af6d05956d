from pathlib import Path

path = Path("dev.kbest")
path.write_bytes(path.read_bytes().decode().encode("latin-1"))
