import unicodedata
from pathlib import Path

path = Path("hyp.txt")
path.write_bytes(unicodedata.normalize("NFD", path.read_text("utf-8")).encode())
