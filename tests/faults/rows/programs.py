"""Faults of programs that score candidates (`--scorer NAME=command:PROGRAM`)."""

import sys

from support.faults import Fault
from support.programs import ESTIMATOR, NAMED
from support.world import DECODE, EVALUATE, TUNE

WITH = DECODE + " --source dev.src --default-weight 1 --scorer qe=command:"
RUN = f"'{sys.executable} -IS qe.py'"
ONE, ALL = "if line.strip(): print(1)", "else: print(flush=True)"
LOOP = f"for line in sys.stdin:\n  {ONE}\n  {ALL}\n"
FIRST, NUMBER = r"expected a first line as .*\"qe\".*", "document 'evening': toy: expected a number as answer 1 of 1, found"
IN_LIMIT = f"{WITH}{RUN}"


def toy(loop: str) -> str:
    """A program that names itself."""
    return f"import sys, time\n{NAMED}\n{loop}"


FAULTS = [
    Fault(f"76-program-{name}", f"{WITH}{RUN}{limit}", f"--scorer qe=command.*{message}", {"qe.py": program}, 1,
          ({"qe.py": ESTIMATOR}, IN_LIMIT))
    for name, limit, message, program in (
        ("dies-at-start", "", FIRST + "ended with exit code 1; its last message: .*No module named 'comet'", "import comet"),
        ("names-nothing", "", FIRST + "found 'Loading'; its messages belong on standard error", "print('Loading', flush=True)"),
        ("has-no-name", "", FIRST + r"found '\[1\]'", "print([1], flush=True)"),
        ("dies-in-the-middle", "", r"document 'evening': toy: ended with exit code 3; its last message: 'memory'; its 2 answers so far are",
         toy("n = 0\nfor line in sys.stdin:\n  n += bool(line.strip())\n  if n == 3: sys.exit(sys.stderr.write('memory') and 3)\n  " + f"{ONE}\n  {ALL}")),
        ("is-killed", "", r"toy: was ended by signal 9 \(Killed\)$", toy("import os\nos.kill(os.getpid(), 9)")),
        ("hangs", ",timeout=1", r"gave no answer for 1 s; let it flush what it prints.* or add ,timeout=SECONDS behind it", toy("time.sleep(60)")),
        ("hangs-at-start", ",timeout=1", FIRST + "gave no answer for 1 s", "import time; time.sleep(60)"),
        ("drips", ",timeout=1", "toy: gave no answer for 1 s",
         toy("input()\nwhile True: print(end='1', flush=True); time.sleep(0.1)")),
        ("answers-before-it-is-asked", ",batch=1", "toy: expected no output before a request, found '7'; its messages belong on standard error",
         toy(f"print('7\\n', flush=True)\n{LOOP}")),
        ("answers-more-than-it-is-asked", "", "toy: expected (no output before a request, found '7'|1 answers to 1 requests, then an empty line, found more)",
         toy(LOOP.replace("print(flush=True)", "print('\\n7', flush=True)"))),
        ("ignores-its-input", "", "toy: ended with exit code 0$", toy("")),
        ("answers-too-few", "", "toy: expected 4 answers to 4 requests, then an empty line, found 3; print one number for each",
         toy(f"n = 0\nfor line in sys.stdin:\n  n += 1\n  if n == 3: continue\n  {ONE}\n  {ALL}")),
        ("answers-too-many", "", "toy: expected 1 answers to 1 requests, then an empty line, found more",
         toy(f"for line in sys.stdin:\n  print(1)\n  {ONE}\n  {ALL}")),
        ("answers-nan", "", f"{NUMBER} 'nan'", toy(LOOP.replace("1)", "'nan')"))),
        ("logs-among-answers", "", f"{NUMBER} 'Batch 1:'; its messages belong on standard error", toy(LOOP.replace("print(1)", "print('Batch 1:'); print(1)"))),
    )
]  # fmt: skip
METRIC = f"{TUNE} --objective m --select none --metric m=command:{RUN}"
JUDGE = f"{EVALUATE} --metric m=command:{RUN}"
UTILITY = f"{DECODE} --search mbr:utility=command:{RUN}"
FAULTS += [
    Fault("76-program-of-a-metric-dies", f"{METRIC} --source dev.src", "--metric m=command, the document of source line 1: toy: ended with exit code 0",
          {"qe.py": toy("")}, 1, ({"qe.py": ESTIMATOR}, f"{METRIC} --source dev.src")),
    Fault("50-program-of-a-metric-without-source", METRIC, "--source: --metric m=command needs the source sentences; give --source FILE",
          {"qe.py": ESTIMATOR}, 2, f"{METRIC},source=no"),
    Fault("76-program-of-an-evaluation-logs", f"{JUDGE},source=no", "--metric m=command, document 'evening': toy: expected a number as answer 1 of 1, found 'Batch 1:'; its messages belong on standard error",
          {"qe.py": toy(LOOP.replace("print(1)", "print('Batch 1:'); print(1)"))}, 1, ({"qe.py": ESTIMATOR}, f"{JUDGE},source=no")),
    Fault("50-program-of-an-evaluation-without-source", JUDGE, "--metric m=command: it needs the source; give --source FILE, or add ,source=no behind it",
          {"qe.py": ESTIMATOR}, 2, f"{JUDGE} --source dev.src"),
    Fault("02-program-of-an-evaluation-of-a-file", f"{EVALUATE} --metric m=dev.qe", "expected a name, NAME=command:PROGRAM or NAME=judge:MODEL; found 'm=dev.qe'; values in a file are given by --scores NAME=HYP:FILE",
          {"qe.py": ESTIMATOR}, 2, f"{JUDGE},source=no"),
    Fault("02-program-of-an-evaluation-named-as-ours", f"{EVALUATE} --metric ter=command:{RUN}", "ter=…: ter is a metric of rerank; take another name", {"qe.py": ESTIMATOR}, 2, f"{JUDGE},source=no"),
    Fault("02-program-of-an-evaluation-twice", f"{JUDGE} --metric m=command:{RUN}", "--metric m=…: two kinds of values of one name; take another name", {"qe.py": ESTIMATOR}, 2,
          f"{JUDGE},source=no --metric n=command:{RUN},source=no"),
    Fault("--config-program-of-an-evaluation", f"{EVALUATE} --config c.toml", r"c\.toml: metric = m=command:… runs a program; if it may, add",
          {"c.toml": f"metric = [\"m=command:{RUN[1:-1]},source=no\"]", "qe.py": ESTIMATOR}, 2, f"{EVALUATE} --config c.toml --trust-config"),
    Fault("76-program-of-a-utility-dies", f"{UTILITY},source=no", "--search mbr:utility=command, source line 1: toy: ended with exit code 0",
          {"qe.py": toy("")}, 1, ({"qe.py": ESTIMATOR}, f"{UTILITY},source=no")),
    Fault("50-program-of-a-utility-without-source", UTILITY, "--source: --search mbr:utility=command needs the source sentences; give --source FILE",
          {"qe.py": ESTIMATOR}, 2, f"{UTILITY} --source dev.src"),
    Fault("--config-program-of-a-utility", f"{DECODE} --config c.toml", r"c\.toml: search = mbr:utility=command:… runs a program; if it may, add",
          {"c.toml": f"search = {{kind = 'mbr', utility = \"command:{RUN[1:-1]}\"}}\nsource = 'dev.src'", "qe.py": ESTIMATOR}, 2,
          f"{DECODE} --config c.toml --trust-config"),
    Fault("02-program-of-a-metric-twice", f"{METRIC},source=no --metric m=dev.qe", "--metric.* m", {"qe.py": ESTIMATOR}, 2, f"{METRIC},source=no"),
    Fault("02-program-missing", f"{WITH}no-such-tool", "no file or directory|no such file or directory; give a program of .PATH", {}, 2, ({"qe.py": ESTIMATOR}, IN_LIMIT)),
    Fault("02-program-of-python", f"{WITH}qe.py", "cannot be started: permission denied; a script has its interpreter before it: python qe.py",
          {"qe.py": ESTIMATOR}, 2, IN_LIMIT),
    Fault("02-program-empty", f"{WITH},window=2", "expected a program, found nothing", {"qe.py": ESTIMATOR}, 2, f"{IN_LIMIT},window=2"),
    Fault("02-program-window", f"{IN_LIMIT},window=0", "--scorer qe=command: window: 0 is not in the range 1<=x", {"qe.py": ESTIMATOR}, 2, f"{IN_LIMIT},window=1"),
    Fault("02-program-key-of-scorers", f"{JUDGE},source=no,window=2", r"--metric m=command: expected one of source, timeout, batch behind the program, found window=; take one of these, or write \\,window= if it",
          {"qe.py": ESTIMATOR}, 2, f"{JUDGE},source=no"),
    Fault("02-program-misspelt-key", f"{IN_LIMIT},windows=2,timeout=9", r"--scorer qe=command: expected one of window, source, timeout, batch behind the program, found windows=; take",
          {"qe.py": ESTIMATOR}, 2, f"{IN_LIMIT},window=2,timeout=9"),
    Fault("02-program-key-of-its-own", f"{IN_LIMIT},batch-size=2", r"found batch-size=; take one of these, or write \\,batch-size= if it belongs to the program",
          {"qe.py": ESTIMATOR}, 2, f"{WITH}{RUN[:-1]} --sizes a=1,b=2 a=1\\,batch-size=2',timeout=9"),
    Fault("02-program-key-of-a-utility", f"{UTILITY},window=2,source=no", r"--search mbr:utility=command: expected one of source, timeout, batch .*, found window=; take",
          {"qe.py": ESTIMATOR}, 2, f"{UTILITY},source=no"),
    Fault("02-program-quote", f"""{WITH}'a "b'""", "No closing quotation.*; quote it as for a shell", {"qe.py": ESTIMATOR}, 2, IN_LIMIT),
    Fault("--environment-program", f"{DECODE} --config c.toml", r"RERANK_DECODE_SCORER = qe=command:… runs a program; if it may, add --trust-config",
          {"c.toml": "source = 'dev.src'\ndefault-weight = 1", "qe.py": ESTIMATOR}, 2, f"{DECODE} --config c.toml --trust-config",
          environment={"RERANK_DECODE_SCORER": f"qe='command:{sys.executable} -IS qe.py'"}),
    Fault("--config-cluster", f"{DECODE} --config c.toml", r"c\.toml: ray = 10\.0\.0\.1:6379 connects to a cluster; if it may, add --trust-config",
          {"c.toml": "ray = '10.0.0.1:6379'\ndefault-weight = 1"}, 2),
    Fault("--config-program", f"{DECODE} --config c.toml", r"c\.toml: scorer = qe=command:… runs a program; if it may, add --trust-config",
          {"c.toml": f"scorer = [\"qe=command:{sys.executable} -IS qe.py\"]\nsource = 'dev.src'\ndefault-weight = 1", "qe.py": ESTIMATOR}, 2,
          f"{DECODE} --config c.toml --trust-config"),
]  # fmt: skip
