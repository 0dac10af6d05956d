from pathlib import Path

Path("dev.docs").write_text("town\n" + "x" * 8193 + "\n", encoding="utf-8")
