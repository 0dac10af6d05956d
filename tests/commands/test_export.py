"""`rerank export --to pearmut`: a campaign for people, and what they judge as a metric of evaluate.

The form of campaigns and annotations is that of Pearmut 1.1.6, which loads such a campaign.
"""

import json
from statistics import mean
from typing import Any

import pytest
from support.world import World

EXPORT = "export --docs docs --to pearmut baseline=a ours=b --out"
SCORES = "--scores esa=a:{0}#baseline --scores esa=b:{0}#ours"
EVALUATE = "evaluate b --baseline a --docs docs --ref a --format json " + SCORES


@pytest.fixture
def two(world: World) -> World:
    """Twelve documents of two sentences, of which the texts differ in ten."""
    world.write("docs", [f"d{i // 2}" for i in range(24)])
    world.write("a", ["<b>the lamp", *(f"it burns {i}" for i in range(1, 24))])
    equal = (2, 3, 5, 22, 23)
    world.write("b", [f"it burns {i}" if i in equal else f"she gives {i}" for i in range(24)])
    world.write("src", [f"il brûle {i}" for i in range(24)])
    return world


def campaign(world: World, more: str = "") -> dict[str, Any]:
    world.ok(f"{EXPORT} campaign {more}")
    found: dict[str, Any] = world.json("campaign/campaign.json")
    return found


def test_a_campaign_has_the_documents_that_differ_blind_and_shuffled(two: World) -> None:
    result = campaign(two, "--source src --annotators 3 --seed 4")
    assert result["info"]["show_model_names"] is result["info"]["shuffle"] is False
    assert (result["info"]["users"], result["info"]["protocol"]) == (3, "cESA")
    items = [item for document in result["data"] for item in document]
    expected = {f"d{d}:{i}" for d in range(12) if d not in (1, 11) for i in (0, 1)}
    assert {item["item_id"] for item in items} == expected
    orders = {tuple(item["tgt"]) for item in items}
    assert orders == {("baseline", "ours"), ("ours", "baseline")}
    for document in result["data"]:
        assert len({tuple(item["tgt"]) for item in document}) == 1
    first = next(item for item in items if item["item_id"] == "d0:0")
    assert first["src"] == "il brûle 0"
    assert first["tgt"]["baseline"] == "<\u2060b>the lamp"  # no markup for Pearmut
    names = [document[0]["item_id"] for document in result["data"]]
    assert names != sorted(names)
    two.ok(f"{EXPORT} same --source src --annotators 3 --seed 4")
    same = two.json("same/campaign.json") | {"campaign_id": "campaign"}
    assert same == result
    two.ok(f"{EXPORT} other --source src --annotators 3 --seed 5")
    assert two.json("other/campaign.json")["data"] != result["data"]


def entry(document: list[Any], user: str, *scores: tuple[int, int], **more: Any) -> dict[str, Any]:
    """A logged annotation of a document: scores of the baseline and of ours for each sentence."""
    annotation = [
        {
            name: {"score": score, "error_spans": []}
            for name, score in zip(("baseline", "ours"), own, strict=True)
        }
        for own in scores
    ]
    return {"annotation": annotation, "item": document, "user_id": user, "item_i": 0, **more}


@pytest.mark.parametrize("form", ["downloaded", "of the server"])
def test_annotations_are_a_metric_with_its_tests(form: str, two: World) -> None:
    """The mean of judged sentences; of several scores by one annotator the last; by hand."""
    data = {one[0]["item_id"]: one for one in campaign(two)["data"]}
    log = [
        entry(data["d0:0"], "u", (1, 1), (1, 1)),
        {"annotation": "__RESET__", "user_id": "u", "item_i": 0, "item": []},
        entry(data["d0:0"], "u", (50, 60), (50, 60)),
        entry(data["d0:0"], "v", (70, 60), (50, 80)),
        entry(data["d2:0"], "v", (0, 0), (0, 0)),
        entry(data["d2:0"], "v", (40, 90), (30, 90)),
        entry(data["d3:0"], "v", (99, 99), (99, 99), item_i="welcome_0"),
    ]
    log.append({"annotation": ["yes"], "item": [{"text": "?"}], "user_id": "v", "item_i": 9})
    text = "\n".join(map(json.dumps, log))
    if form == "downloaded":  # of two campaigns, with the same name for two annotators
        first, second = ([one for one in log if one["user_id"] == user] for user in "uv")
        text = json.dumps({"c": first, "d": [{**one, "user_id": "u"} for one in second]})
    two.write("log", text)
    base, ours = two.ok(EVALUATE.format("log")).json["systems"]
    baseline, chosen = base["scores"]["esa"], ours["scores"]["esa"]
    assert baseline["score"] == pytest.approx(mean([60, 50, 40, 30]))
    assert chosen["score"] == pytest.approx(mean([60, 70, 90, 90]))
    assert chosen["difference"] == pytest.approx(chosen["score"] - baseline["score"])
    assert chosen["p_value"] is None  # of two judged documents
    assert "|sentences:4" in chosen["signature"]


def test_lines_that_nobody_judged_are_in_no_mean(two: World) -> None:
    two.write("a.da", ["1", "NA", "9"] + ["2"] * 21)
    two.write("b.da", ["3", "5", "NA"] + ["2"] * 21)
    given = EVALUATE.removesuffix(SCORES) + "--scores da=a:a.da --scores da=b:b.da"
    base, ours = (system["scores"]["da"] for system in two.ok(given).json["systems"])
    assert (base["score"], ours["score"]) == pytest.approx((43 / 22, 45 / 22))


def test_judged_documents_are_the_samples_of_the_test(two: World) -> None:
    log = [entry(one, "u", (50, 60), (50, 60)) for one in campaign(two)["data"]]
    two.write("log", "\n".join(map(json.dumps, log)))
    ours = two.ok(EVALUATE.format("log")).json["systems"][1]
    assert ours["scores"]["esa"]["p_value"] == pytest.approx(2 / 2**10)  # all signs are equal
    assert "esa higher, significant" in ours["verdict"]
