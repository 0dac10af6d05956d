import unicodedata
from pathlib import Path

path = Path("dev.kbest")
path.write_bytes(unicodedata.normalize("NFD", path.read_text("utf-8")).encode())
