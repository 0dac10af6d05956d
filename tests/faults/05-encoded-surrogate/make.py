from pathlib import Path

path = Path("dev.kbest")
path.write_bytes(path.read_bytes().replace("é".encode(), b"\xed\xa0\xbd\xed\xb8\x80"))
