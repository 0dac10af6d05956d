from pathlib import Path

path = Path("hyp.txt")
path.write_bytes(path.read_text("utf-8").replace("café", "\u202bcafé\u202c").encode())
