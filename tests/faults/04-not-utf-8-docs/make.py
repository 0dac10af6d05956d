from pathlib import Path

path = Path("dev.docs")
path.write_bytes(b"caf\xe9\n" * 4)
