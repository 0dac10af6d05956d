from pathlib import Path

path = Path("dev.kbest")
path.write_bytes(path.read_text("utf-8").replace("it gives", "it\xa0gives").encode())
