from pathlib import Path

path = Path("dev.kbest")
text = path.read_text(encoding="utf-8").replace("WP0=", "\x1b[31mW\x9bP\u202e0=")
path.write_text(text, encoding="utf-8")
