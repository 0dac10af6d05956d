from pathlib import Path

ids = ["../../etc", "<script>alert(1)</script>", "=cmd()", "x" * 5000]
Path("dev.docs").write_text("".join(f"{name}\n" for name in ids))
