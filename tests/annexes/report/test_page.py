"""The page: whole without JavaScript, small however large the crawl, and nothing from the web is ever HTML in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.features.tallies.tallies import Tallies
from bigcrawl.views.figures import PldFigures
from bigcrawl.views.plds import TopPld
from bigcrawl_report.command import write_files
from bigcrawl_report.document import document_of
from bigcrawl_report.html import CHARACTERS_MAX, embedded_json, html_of
from tests.annexes.report.figures import figures_of, full_tallies, large_figures

if TYPE_CHECKING:
    from pathlib import Path

BYTES_MAX = 5_000_000
HOSTILE = "</script><img src=x onerror=alert(1)>\"'\u202e\x00&amp;"
VOID = {"meta", "rect"}


class Elements(HTMLParser):
    """Reads a page, and checks that its elements are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.opened.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.opened:
            self.text.setdefault(self.opened[-1], []).append(data)


def parsed(page: str) -> Elements:
    elements = Elements()
    elements.feed(page)
    elements.close()
    assert not elements.opened
    return elements


def test_page_loads_nothing_and_runs_only_its_own_script(tmp_path: Path) -> None:
    """No element names another file, no attribute is a script, and the policy has the hashes of script and style."""
    elements = parsed(html_of(document_of(figures_of(tmp_path))))
    for tag, attributes in elements.tags:
        assert not {"src", "style"} & attributes.keys(), tag
        assert not [name for name in attributes if name.startswith("on")], tag
        assert (attributes.get("href") or "#").startswith("#"), attributes
    policy = next(a["content"] for _, a in elements.tags if a.get("http-equiv") == "Content-Security-Policy") or ""
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    [style], (data, script) = elements.text["style"], elements.text["script"]
    json.loads(data)
    for text in (style, script):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert "</script" not in script


def test_what_the_web_says_is_text(tmp_path: Path) -> None:
    """Media types, URLs, reasons, PLDs and names of hosts that want to be elements, or end the data."""
    tallies = Tallies()
    tallies.record_answer(200, HOSTILE.encode(), HOSTILE.encode(), 5)
    tallies.media_types.count_name(HOSTILE, 1)  # as if it had passed
    tallies.host_gaps.count_gap(HOSTILE, 1_000, 1_000)
    tallies.server_gaps.count_gap(HOSTILE, 1_000, 1_000)
    error = {"reason": HOSTILE, "pld": HOSTILE, "fetches": 1, "last": HOSTILE, "example": f"http://a.example/{HOSTILE}"}
    figures = figures_of(
        tmp_path, tallies, errors=[error], plds=PldFigures([TopPld(HOSTILE, 1, 1, 1, 1, 1)], [], {}, None, 0)
    )
    page = html_of(document_of(figures))
    elements = parsed(page)
    assert "img" not in {tag for tag, _ in elements.tags}
    escaped = ("&lt;img src=x onerror=alert(1)&gt;", "\\u003cimg src=x onerror=alert(1)\\u003e")  # as HTML, as JSON
    assert page.count("onerror=alert(1)") == sum(map(page.count, escaped)) >= 6
    assert "\u202e" not in page
    assert "\x00" not in page
    assert not [text for texts in elements.text.values() for text in texts if "<img" in text and "onerror" not in text]


def test_data_in_the_page_cannot_end_its_element() -> None:
    data = {"a": "</script><!--<script>&", "b": [1.5, None, 2]}
    text = embedded_json(data)
    assert json.loads(text) == data
    assert not set("<>&") & set(text)
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded_json([float("nan")])


def test_every_table_has_its_caption_and_heads_and_every_plot_its_title(tmp_path: Path) -> None:
    document = document_of(figures_of(tmp_path, full_tallies(50)))
    elements = parsed(html_of(document))
    tags = [tag for tag, _ in elements.tags]
    assert tags.count("table") == tags.count("caption") == tags.count("thead") > 10
    assert tags.count("h1") == 1
    assert tags.count("h2") == len(document.parts) + len(document.papers)
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in elements.tags if tag == "th")
    assert tags.count("figure") == tags.count("figcaption") == len([p for p in document.plots if len(p.x) > 1]) >= 6
    names = [attributes["id"] for _, attributes in elements.tags if "id" in attributes]
    assert len(names) == len(set(names))


def test_report_of_a_crawl_of_many_plds_is_small(tmp_path: Path) -> None:
    """All lists are as long as they get. More PLDs make it no longer: the lists are cut when they are counted."""
    document = document_of(large_figures(tmp_path, 20_000))
    page = html_of(document)
    parsed(page)
    assert len(page.encode()) < BYTES_MAX / 4
    assert len(json.dumps(document.to_json()).encode()) < BYTES_MAX / 4


def test_long_texts_are_cut(tmp_path: Path) -> None:
    error = {"reason": "r", "pld": "p", "fetches": 1, "last": "", "example": "http://a.example/" + "x" * 5_000}
    page = html_of(document_of(figures_of(tmp_path, errors=[error])))
    assert max(map(len, re.findall("x+", page))) < CHARACTERS_MAX
    assert "…" in page


def test_files_are_private_and_replace_earlier_ones(tmp_path: Path) -> None:
    document = document_of(figures_of(tmp_path))
    directory = tmp_path / "reports" / "today"
    write_files(document, directory)
    (directory / "report.html").write_text("old")
    write_files(document, directory)
    assert sorted(path.name for path in directory.iterdir()) == ["report.html", "report.json"]
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    assert (directory / "report.html").read_text() == html_of(document)
    assert json.loads((directory / "report.json").read_text()) == document.to_json()


def test_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"the report cannot be written to .*/file.*name another directory"):
        write_files(document_of(figures_of(tmp_path)), tmp_path / "file")
