import json
from pathlib import Path

weights = {"LM0": [1], "TM0": [1, 1], "WP0": [1], "\x1b[31mbad\x9b\u202e": "x\x9b"}
Path("w.ini").write_text(json.dumps(weights), encoding="utf-8")
