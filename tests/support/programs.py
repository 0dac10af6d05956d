"""A program that scores candidates, as `--scorer NAME=command:PROGRAM` runs it."""

NAMED = 'print(\'{"name": "toy", "version": "1"}\', flush=True)'
ESTIMATOR = f"""\
import json, sys
{NAMED}
for line in sys.stdin:
    if line.strip():
        item = json.loads(line)
        words = " ".join([*item.get("candidates_before", []), item["candidate"]]).split()
        print(len(item.get("source", "")) - len({{*words}}) ** 2)
    else:
        print(flush=True)
"""
