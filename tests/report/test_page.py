"""The page of a report: well formed, safe against its texts, without anything from elsewhere."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from support.reports import HOSTILE, report_of

from rerank.report.page import render, visible

VOID = {"meta", "link", "input"}


class Page(HTMLParser):
    """Elements, ids, texts and scripts of a page; a fault for tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.raw: dict[str, str] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            self.raw[self.open[-1]] = self.raw.get(self.open[-1], "") + data
        else:
            self.texts.append(data)


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render(report_of()))


def test_hostile_texts_stand_in_the_page_as_texts(page: Page) -> None:
    text = "\0".join(page.texts)
    for hostile in HOSTILE:
        assert visible(hostile) in text
    assert "49" not in "".join(t for t in page.texts if "7*7" in t)
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert "img" not in {tag for tag, _ in page.tags}
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)


def test_the_policy_allows_the_style_and_the_script_of_the_page_alone(page: Page) -> None:
    (policy,) = (a["content"] for _, a in page.tags if a.get("http-equiv"))
    assert policy is not None
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.raw[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_there_is_nothing_from_elsewhere_and_nothing_inline(page: Page) -> None:
    names = {name for _, attrs in page.tags for name in attrs}
    assert not names & {"style", "target", "src", "action"}
    links = [a["href"] for _, a in page.tags if "href" in a]
    assert all(link is not None and link.startswith(("#", "data:,")) for link in links)
    assert "http" not in page.raw["style"] + page.raw["script"]


def test_ids_are_unique_and_links_lead_to_them(page: Page) -> None:
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = {a["href"][1:] for _, a in page.tags if (a.get("href") or "").startswith("#")}  # type: ignore[index]
    assert targets <= set(ids)
    labels = {a["aria-labelledby"] for _, a in page.tags if "aria-labelledby" in a}
    assert labels <= set(ids)
    assert [tag for tag, _ in page.tags].count("h1") == 1


def test_the_figures_are_those_of_the_evaluation() -> None:
    report = report_of()
    text = " ".join("".join(Page(render(report)).texts).split())
    base, ours = report.evaluation.systems
    minus = str.maketrans("-", "\N{MINUS SIGN}")
    assert f"BLEU went from {base.bleu:.2f} to {ours.bleu:.2f}" in text
    assert f"{ours.difference:+.2f}".translate(minus) in text
    for score in ours.metrics.values():
        assert f"{score.score:.2f}" in text
        assert score.signature in text
    counts = ours.documents
    assert f"{counts.better} of 12 documents got better, {counts.worse} worse" in text
    for one in report.documents:
        assert f"{one.gain:+.2f}".translate(minus) in text
    assert "on documents that were held out, 20.50 ± 1.25 BLEU, +0.50 over" in text


def test_the_same_report_is_the_same_page_and_documents_that_are_not_shown_are_counted() -> None:
    assert render(report_of()) == render(report_of())
    few = Page(render(report_of(shown=2)))
    articles = [attrs for tag, attrs in few.tags if tag == "article"]
    assert len(articles) == 2
    rows = [a for tag, a in few.tags if tag == "tr" and (a.get("id") or "").startswith("row-")]
    assert len(rows) == 12


def test_a_document_of_which_only_some_sentences_are_shown_says_so() -> None:
    report = report_of(shown=1)
    documents = [replace(report.documents[0], changed=5), *report.documents[1:]]
    text = " ".join("".join(Page(render(replace(report, documents=documents))).texts).split())
    assert "5 of 3 sentences changed, of which the first 1 are shown" in text
    assert "of which the first" not in "".join(Page(render(report)).texts)


def test_without_summary_and_weights_the_page_says_how_to_get_them() -> None:
    bare = replace(report_of(), search=None, weights={}, tuning={})
    text = " ".join("".join(Page(render(bare)).texts).split())
    assert "Give --summary FILE" in text
    assert "Give --weights FILE" in text
    odd = replace(report_of(), tuning={"selection": "none", "algorithm": ["x"]})
    assert "without held-out figures" in "".join(Page(render(odd)).texts)


def test_invisible_characters_are_shown_as_code_points() -> None:
    assert visible("a\u202eb\u200bc\td") == "a‹U+202E›b‹U+200B›c\td"
    assert re.sub(r"‹U\+00\w\w›", "", visible("\0\x1b\x9f")) == ""
