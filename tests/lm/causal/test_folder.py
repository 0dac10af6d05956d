"""Folders of Hugging Face models: what is opened, what is refused, and when digests change."""

import json
import sys
from pathlib import Path

import pytest
from support import causal

from lm.causal.folder import CausalFolderError, open_causal_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return causal.save(tmp_path / "gpt")


def refused(folder: Path) -> str:
    with pytest.raises(CausalFolderError) as fault:
        open_causal_model(folder)
    message = str(fault.value)
    assert "\n" not in message
    return message


def test_a_model_is_opened_with_its_positions_and_the_token_that_texts_begin_with(
    folder: Path,
) -> None:
    opened = open_causal_model(folder)
    assert (opened.positions, opened.begin) == (64, 0)
    lamp, end, empty = opened.encode(["the lamp\n", "\n", ""])
    assert lamp[-1:] == end
    assert empty == []
    assert 0 not in opened.encode(["<|endoftext|>"])[0]  # special only where we put it


def test_digests_differ_with_weights_and_tokenizers(folder: Path, tmp_path: Path) -> None:
    first = open_causal_model(folder).digest
    assert first == open_causal_model(causal.save(tmp_path / "again")).digest
    assert first != open_causal_model(causal.save(tmp_path / "other", "llama")).digest
    words = json.loads((folder / "tokenizer.json").read_text())
    words["truncation"] = None
    (folder / "tokenizer.json").write_text(json.dumps(words, indent=1))
    assert open_causal_model(folder).digest != first


def test_what_is_no_folder_is_refused_without_a_download(tmp_path: Path) -> None:
    assert "expected a folder written by save_pretrained, found none" in refused(tmp_path / "no")
    (tmp_path / "file").touch()
    assert "found a file" in refused(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert "expected config.json" in refused(tmp_path / "empty")


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert "found none" in refused(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    message = refused(tmp_path)
    assert "found only pytorch_model.bin, a pickle" in message
    assert "safe_serialization=True" in message


def test_code_of_a_model_is_never_run(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoModelForCausalLM": "own.Model"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text("raise SystemExit('it was run')")
    assert "code of its own" in refused(folder)


def test_broken_weights_and_configurations_are_refused_in_a_line(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"no tensors")
    assert "cannot load it as a causal language model" in refused(folder)
    (folder / "config.json").write_text("{")
    assert "expected JSON" in refused(folder)


def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").touch()
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert "pip install 'rerank-mt[hf]'" in refused(tmp_path)
