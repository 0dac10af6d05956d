"""`candidates` against `generate` of transformers and the model's loss of texts; resumed runs."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from typing import Any

import pytest
from support import seq2seq
from support.world import ROOT, World

SOURCES = ["the lamp", "it is old", "she", "no sea at night", "he reads"]
RUN = "candidates --source src --docs docs --n-best 4 --longest 9 --batch 2 --out out.jsonl --model"
LANGUAGES = ",src=zho_Hans,tgt=eng_Latn"
MODEL = f"seq2seq:mt{LANGUAGES}"
DRAWS = "--sample --temperature 0.8 --epsilon 0.001"


@pytest.fixture
def translator(world: World) -> World:
    seq2seq.save(world.folder / "mt", "nllb")
    world.write("src", SOURCES)
    world.write("docs", ["a", "a", "b", "b", "b"])
    return world


def lists(world: World) -> list[dict[str, Any]]:
    return [json.loads(line) for line in world.lines("out.jsonl")]


@contextmanager
def killed_after(patches: pytest.MonkeyPatch, engine: Any, calls: int) -> Iterator[None]:
    """An engine that is interrupted after so many calls, of a sentence each."""
    draw, numbers = engine.generated, count()

    def killed(*given: Any) -> Any:
        if next(numbers) == calls:
            raise KeyboardInterrupt
        return draw(*given)

    with patches.context() as patch:
        patch.setattr(engine, "generated", killed)
        yield


def test_beams_are_those_of_transformers_with_the_loss_of_their_texts(translator: World) -> None:
    """The tokenizer reads texts as letters: it has no merges, unlike the model's vocabulary."""
    import torch

    translator.ok(f"{RUN} {MODEL}")
    words, own = seq2seq.plain(translator.folder / "mt")
    words.src_lang = "zho_Hans"
    code, end = words.convert_tokens_to_ids("eng_Latn"), words.eos_token_id
    result = lists(translator)
    assert [line["document"] for line in result] == ["a", "a", "b", "b", "b"]
    for source, line in zip(SOURCES, result, strict=True):
        assert line["source"] == source
        ids = torch.tensor([words(source).input_ids])
        beams = own.generate(
            ids, num_beams=4, num_return_sequences=4, max_new_tokens=10, forced_bos_token_id=code
        )
        expected = dict[str, float]()
        for row in beams[:, 2:].tolist():
            text = " ".join(words.decode(row[: row.index(end)] if end in row else row).split())
            expected[text] = seq2seq.log_p(translator.folder / "mt", LANGUAGES, [source], [text])
        texts = {one["text"]: one["features"]["logprob"] for one in line["candidates"]}
        assert [*texts] == [*expected]
        assert texts == pytest.approx(expected, abs=1e-3)
    assert "no faults, no warnings" in translator.ok("check --kbest out.jsonl").out
    scored = translator.ok(f"score --kbest out.jsonl --lm g={MODEL} --out -").out
    for line in map(json.loads, scored.splitlines()):
        for candidate in line["candidates"]:
            features = candidate["features"]
            assert features["logprob"] == pytest.approx(features["g"], abs=1e-4)
    channel = "--lm chan=seq2seq:mt,src=eng_Latn,tgt=zho_Hans,reverse=yes"
    translator.write("ref", [line["candidates"][-1]["text"] for line in result])
    translator.write("start", "[weight]\nlogprob= 1\n")
    translator.ok(f"tune-mert --kbest out.jsonl --ref ref {channel} --start start --out w.json")
    translator.ok(f"decode --kbest out.jsonl {channel} --weights w.json --out out")


def test_groups_of_one_beam_pay_for_the_tokens_of_earlier_groups(translator: World) -> None:
    """All groups advance in step here: of each the next token of least cost; ends are free."""
    import torch

    translator.ok(f"{RUN} {MODEL} --beam-groups 4 --diversity-penalty 0.7")
    words, own = seq2seq.plain(translator.folder / "mt")
    words.src_lang = "zho_Hans"
    code, end = words.convert_tokens_to_ids("eng_Latn"), words.eos_token_id
    start = own.config.decoder_start_token_id
    for source, line in zip(SOURCES, lists(translator), strict=True):
        ids = torch.tensor([words(source).input_ids])
        groups: list[list[int]] = [[] for _ in range(4)]
        sums = [0.0] * 4
        for place in range(9):
            taken: dict[int, int] = {}
            for g, tokens in enumerate(groups):
                if len(tokens) < place or end in tokens:
                    continue
                before = torch.tensor([[start, code, *tokens]])
                with torch.no_grad():
                    logits = own(input_ids=ids, decoder_input_ids=before).logits[0, -1]
                log_p = logits.log_softmax(0)
                costs = log_p.clone()
                for token, n in taken.items():
                    costs[token] -= 0.7 * n
                chosen = int(costs.argmax())
                sums[g] += float(log_p[chosen])
                tokens.append(chosen)
                if chosen != end and place < 8:  # the last place is free, too
                    taken[chosen] = taken.get(chosen, 0) + 1
        expected = {
            " ".join(words.decode(tokens, skip_special_tokens=True).split()) for tokens in groups
        }
        texts = [candidate["text"] for candidate in line["candidates"]]
        assert {*texts} == expected
        result = [candidate["features"]["logprob"] for candidate in line["candidates"]]
        assert result == sorted(result, reverse=True)
    kept = lists(translator)
    wide = RUN.replace("--batch 2", "--batch 5")
    translator.ok(f"{wide} {MODEL} --beam-groups 4 --diversity-penalty 0.7")
    for one, other in zip(kept, lists(translator), strict=True):
        texts = [[c["text"] for c in line["candidates"]] for line in (one, other)]
        assert texts[0] == texts[1]


def test_draws_depend_on_the_seed_not_on_batches_and_a_stopped_run_goes_on_with_equal_bytes(
    translator: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lm.seq2seq

    translator.ok(f"{RUN} {MODEL} {DRAWS}")
    whole, result = translator.text("out.jsonl"), lists(translator)
    for line in result:
        votes = [candidate["features"]["votes"] for candidate in line["candidates"]]
        scores = [candidate["features"]["logprob"] for candidate in line["candidates"]]
        assert sum(votes) == 4
        assert scores == sorted(scores, reverse=True)
    translator.ok(f"{RUN} {MODEL} {DRAWS} --batch 3")
    for line, other in zip(result, lists(translator), strict=True):  # equal but for rounding
        votes = [
            {candidate["text"]: candidate["features"]["votes"] for candidate in own["candidates"]}
            for own in (line, other)
        ]
        assert votes[0] == votes[1]
    translator.ok(f"{RUN} {MODEL} {DRAWS} --seed 2")
    assert translator.text("out.jsonl") != whole
    with killed_after(monkeypatch, lm.seq2seq.TranslationEngine, 4):
        assert translator.run(f"{RUN} {MODEL} {DRAWS}").exit == 130
    part = translator.folder / "out.jsonl.part"
    part.write_bytes(part.read_bytes() + b'{"document": "b", "sou')
    assert "add --resume" in translator.run(f"{RUN} {MODEL} {DRAWS}").err
    for others in ("", f"{DRAWS} --seed 2"):
        refused = translator.run(f"{RUN} {MODEL} {others} --resume").err
        assert "of a run with another model" in refused
    again = translator.ok(f"{RUN} {MODEL} {DRAWS} --resume")
    assert "4 sentences are kept in out.jsonl.part" in again.err
    assert (translator.text("out.jsonl"), part.exists()) == (whole, False)


def test_long_sources_that_are_cut_and_blank_ones_are_counted(translator: World) -> None:
    translator.write("src", ["the lamp", "", "she " * 80, "no " * 90, " "])
    assert "add ,long=cut behind" in translator.run(f"{RUN} {MODEL}").err
    told = translator.ok(f"{RUN} {MODEL},long=cut").err
    assert "2 x text longer than the 64 positions of the model, cut, first at src:3 [" in told
    assert "2 x blank source line, whose candidates are invented; write its sentence, " in told
    assert "first at src:2 [R520 blank-source-line]" in told
    strict = f"{RUN} {MODEL},long=cut --strict"
    assert translator.run(strict).err.startswith("rerank: src:2: blank source line")
    translator.ok(f"{strict} --allow blank-source-line --allow cut-candidate")


def test_texts_of_more_tokens_than_the_model_has_positions_are_left_out(world: World) -> None:
    seq2seq.save(world.folder / "mt", "nllb", positions=24)
    world.write("src", SOURCES)
    world.write("docs", ["a"] * len(SOURCES))
    run = f"{RUN.replace('--longest 9', '--longest 20')} {MODEL} --sample"
    warning = "candidate whose text has more tokens than the model has positions, left out"
    told = world.ok(run).err
    words, _ = seq2seq.plain(world.folder / "mt")
    kept = [candidate["text"] for line in lists(world) for candidate in line["candidates"]]
    assert f"{5 * 4 - len(kept)} x {warning}, first at out.jsonl" in told
    assert 0 < len(kept) < 5 * 4
    assert all(len(words(text_target=text).input_ids) <= 24 for text in kept)


@pytest.mark.parametrize("kind", ["nllb", "t5", "marian-last"])
def test_a_model_converted_for_ctranslate2_finds_what_it_found_before(
    kind: str, translator: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm.ctranslate2 import ConvertedEngine

    converters = pytest.importorskip("ctranslate2").converters
    monkeypatch.setitem(seq2seq.SHAPE, "decoder_attention_heads", 2)  # as many as the encoder has
    folder = seq2seq.save(translator.folder / kind, kind)
    files = ["tokenizer.json", "tokenizer_config.json"]
    converters.TransformersConverter(str(folder), copy_files=files).convert(f"ct2-{kind}")
    keys = seq2seq.LANGUAGES[kind]
    translator.ok([*RUN.split(), f"seq2seq:{kind}{keys}"])
    true = lists(translator)
    run = [*RUN.split(), f"ct2:ct2-{kind}{keys}"]
    translator.ok(run)
    for line, other in zip(lists(translator), true, strict=True):
        texts, expected = (
            {candidate["text"]: candidate["features"]["logprob"] for candidate in own["candidates"]}
            for own in (line, other)
        )
        both = texts.keys() & expected.keys()
        assert len(both) > 1
        truth = pytest.approx([expected[one] for one in both], abs=1e-3)
        assert [texts[one] for one in both] == truth
    translator.ok([*run, "--sample"])
    whole = translator.text("out.jsonl")
    for line in lists(translator):
        assert sum(candidate["features"]["votes"] for candidate in line["candidates"]) == 4
    with killed_after(monkeypatch, ConvertedEngine, 2):
        assert translator.run([*run, "--sample"]).exit == 130
    assert "2 sentences are kept" in translator.ok([*run, "--sample", "--resume"]).err
    assert translator.text("out.jsonl") == whole
    translator.ok([*run, "--sample", "--seed", "2"])
    assert translator.text("out.jsonl") != whole


def test_converted_models_need_more(translator: World, monkeypatch: pytest.MonkeyPatch) -> None:
    translator.write("mt/model.bin", b"")
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    refused = translator.refused(f"{RUN} {MODEL.replace('seq2seq', 'ct2')}", exit=3)
    assert "pip install 'rerank-mt[ct2]'" in refused
    (translator.folder / "mt" / "tokenizer_config.json").unlink()
    run = translator.run(f"{RUN} {MODEL.replace('seq2seq', 'ct2')}")
    assert "mt: expected the files of a tokenizer, found no tokenizer_config.json" in run.err


def test_the_recipe_s_model_translates(translator: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "recipes" / "adapters" / "hf")
    sizes = "--width 16 --layers 1 --vocabulary 300 --seconds 0.1"
    monkeypatch.setattr(sys, "argv", ["", "src", "src", "--out", "own", *sizes.split()])
    recipe: Any = import_module("translate")
    recipe.main()
    translator.ok(f"{RUN} seq2seq:own")
    scored = translator.ok("score --kbest out.jsonl --lm g=seq2seq:own --out -").out
    assert "logprob" in scored
