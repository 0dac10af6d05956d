from pathlib import Path

path = Path("dev.kbest")
path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
