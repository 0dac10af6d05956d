"""COMET and CometKiwi for `rerank --scorer NAME=command:…`, in an environment of their own.

    python -m venv comet-env
    comet-env/bin/pip install -r recipes/adapters/estimators/requirements.txt
    rerank decode … --source test.src --scorer \
      "kiwi=command:comet-env/bin/python comet_program.py Unbabel/wmt22-cometkiwi-da"

COMET 2.2 needs numpy below 2 and cannot live beside rerank. Its version for the score cache has a
digest of the checkpoint and its hparams.yaml, so a name on the hub is looked up, and downloaded if
need be, before the first line.

With `,window=2` two sentences are one text, joined by `</s>`, and the score is of both. That is not
the method of Vernikos et al. (2022), who embed the context but average over the current sentence
alone (`enable_context()` of COMET). COMET cuts texts longer than its encoder without a message. Of
several references it has the first; the others are not used.

With COMET 2.2.7 and tiny random checkpoints (referenceless, regression, unified) the scores are
those of `predict()` within 3e-8 (tests/recipes/test_estimators.py with $COMET_PYTHON). Published
weights were not available. MetricX is left out: its code is in no package.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

SEPARATOR = " </s> "


def sample(request: dict[str, Any]) -> dict[str, str]:
    """What COMET takes; a request without a reference is for a model that needs none."""
    before = request.get("sources_before", []), request.get("candidates_before", [])
    result = {
        "src": SEPARATOR.join([*before[0], request.get("source", "")]),
        "mt": SEPARATOR.join([*before[1], request["candidate"]]),
    }
    references = request.get("references") or [request.get("reference")]
    return result if references[0] is None else {**result, "ref": references[0]}


def checkpoint_of(model: str) -> Path:
    """The checkpoint file of a model, downloaded unless it is one."""
    return Path(model if Path(model).is_file() else import_module("comet").download_model(model))


def digest(checkpoint: Path) -> str:
    """First digits of the SHA-256 of a checkpoint and its hparams.yaml, one folder up."""
    result = hashlib.sha256()
    for path in (checkpoint, checkpoint.absolute().parents[1] / "hparams.yaml"):
        with path.open("rb") as file:
            for part in iter(lambda: file.read(1 << 20), b""):
                result.update(part)
    return result.hexdigest()[:12]


def main() -> None:
    """Answer the requests on standard input."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="name on the Hugging Face hub, or a checkpoint")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--gpus", type=int, default=0)
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes to standard error
    path = checkpoint_of(options.model)
    name, tool = Path(options.model).name, f"COMET {version('unbabel-comet')}"
    own = {"name": name, "version": f"{tool} {digest(path)}"}
    print(json.dumps(own), file=answers, flush=True)
    model: Any = None
    batch = []
    for line in sys.stdin:
        if line.strip():
            batch.append(sample(json.loads(line)))
            continue
        if model is None:  # here, so that a run whose scores are cached does without
            model = import_module("comet").load_from_checkpoint(str(path))
        if model.requires_references() and not all("ref" in one for one in batch):
            sys.exit("needs a reference: give it to --metric, not to --scorer")
        result = model.predict(
            batch, batch_size=options.batch_size, gpus=options.gpus, progress_bar=False
        )
        for score in result.scores:
            print(float(score), file=answers)
        print(file=answers, flush=True)
        batch = []


if __name__ == "__main__":
    main()
