import json
import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[1] / "tiny_model.py"))
path = Path("model/config.json")
content = json.loads(path.read_bytes())
content["vocabulary"] = "\x1b[31mdigest\x9b\u202e"
path.write_text(json.dumps(content), encoding="utf-8")
