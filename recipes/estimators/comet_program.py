"""COMET and CometKiwi for `rerank --scorer NAME=command:…`, in an environment of their own.

    python -m venv comet-env && comet-env/bin/pip install -r recipes/estimators/requirements.txt
    rerank decode … --source test.src --scorer \
      "kiwi=command:comet-env/bin/python comet_program.py Unbabel/wmt22-cometkiwi-da"

COMET 2.2 needs numpy below 2 and cannot live beside rerank. With `,window=2` two sentences stand
behind each other, parted by `</s>`, as of Vernikos et al. 2022.

Not run where this was written, which had neither COMET nor its models: the test runs it with a
stand-in for the package `comet`. MetricX is left out: its code is in no package.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

SEPARATOR = " </s> "


def sample(request: dict[str, Any]) -> dict[str, str]:
    """What COMET takes; a request without a reference is for a model that needs none."""
    before = request.get("sources_before", []), request.get("candidates_before", [])
    found = {
        "src": SEPARATOR.join([*before[0], request.get("source", "")]),
        "mt": SEPARATOR.join([*before[1], request["candidate"]]),
    }
    references = request.get("references") or [request.get("reference")]
    return found if references[0] is None else {**found, "ref": references[0]}


def main() -> None:
    """Answer the requests on standard input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="name on the Hugging Face hub, or a checkpoint")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--gpus", type=int, default=0)
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes to standard error
    own = {"name": options.model, "version": f"COMET {version('unbabel-comet')}"}
    print(json.dumps(own), file=answers, flush=True)
    model: Any = None
    batch = []
    for line in sys.stdin:
        if line.strip():
            batch.append(sample(json.loads(line)))
            continue
        if model is None:  # here, so that a run whose scores are cached does without
            comet, path = import_module("comet"), options.model
            path = path if os.path.exists(path) else comet.download_model(path)
            model = comet.load_from_checkpoint(path)
        found = model.predict(
            batch, batch_size=options.batch_size, gpus=options.gpus, progress_bar=False
        )
        for score in found.scores:
            print(float(score), file=answers)
        print(file=answers, flush=True)
        batch = []


if __name__ == "__main__":
    main()
