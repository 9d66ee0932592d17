"""A renderer of a project's own gets pages, and asks through the node: politely, or not at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.annexes.rendering.reading import counted, records
from tests.support.browsing.rendering import AGENT, DELAY_S, rendering
from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below
from tests.support.servers.scripted_web import INSIDE, LIBRARY, TRACKER, scripted_web

if TYPE_CHECKING:
    from pathlib import Path

RENDERER = "tests.support.browsing.asking_renderer.AskingRenderer"


@pytest.mark.long("a crawl with delays; test_loads.py asks its parts")
def test_a_renderer_asks_as_politely_as_the_crawl(tmp_path: Path) -> None:
    """A page's requests to its own host keep the host's delay, and so do two pages' requests to another one.

    Forbidden paths, an address inside, a blocked host and unwanted kinds are not asked for. Documents are stored, and
    their links are followed. Pages whose renderer fails come as they were fetched.
    """
    with no_strays_below(tmp_path), scripted_web(2) as web:
        home, other = web.bases["fetched"], web.bases[LIBRARY]
        asked = [
            *([f"{home}/api?page={number}", "xhr"] for number in range(3)),
            [f"{home}/private/x", "xhr"],
            [f"{other}/private/y", "xhr"],
            [f"{web.bases[INSIDE]}/secret", "xhr"],
            [f"{web.bases[TRACKER]}/track.js", "script"],
            [f"{home}/x.png", "image"],
        ]
        web.extra["/one"] = f"<!-- ask {json.dumps([*asked, [f'{other}/a', 'xhr']])} -->"
        web.extra["/two"] = f"<!-- ask {json.dumps([[f'{other}/b.js', 'script'], [f'{other}/c', 'xhr']])} -->"
        web.extra |= {"/a": "a", "/c": "c", "/one/found": "<p>here"}
        web.extra |= {"/dies": "dies<a href=/fails>x</a>", "/fails": "fails<a href=/last>x</a>", "/last": "last"}
        seeds = [f"{home}/one", f"{web.bases['timers']}/two", f"{web.bases['more']}/dies"]
        always = json.dumps([*seeds, "*/fails"])
        settings = rendering(web, BIGCRAWL_RENDER="rules", BIGCRAWL_RENDER_ALWAYS=always, BIGCRAWL_RENDERER=RENDERER)
        crawl = Crawl(tmp_path / "crawl", seeds, settings)
        assert crawl.run() == 0, crawl.log.read_text()
        assert web.faults(DELAY_S - 0.01, AGENT) == []
        assert not web.asked(INSIDE)
        paths = [each.path for each in web.asked("fetched")]
        assert paths[:2] == ["/robots.txt", "/one"]
        assert sorted(paths[2:5]) == [f"/api?page={number}" for number in range(3)]
        assert set(paths[5:]) == {"/one/found"}
        assert {each.path for each in web.asked("more")} == {"/robots.txt", "/dies", "/fails", "/last"}
        library = [each.path for each in web.asked(LIBRARY)]
        assert library[0] == "/robots.txt"
        assert sorted(library[1:]) == ["/a", "/b.js", "/c"]
    expected = {"pages": 2, "links": 2, "reasons/rule": 4, "raw/suspect": 1, "raw/failed": 1}
    expected |= {"requests/sent": 6, "requests/refused": 3, "requests/blocked": 2}
    assert counted(crawl.log.read_text()) == expected
    stored = records(tmp_path / "crawl" / "warc")
    document = next(each for each in stored if each["WARC-Type"] == "conversion" and "/one" in each["WARC-Target-URI"])
    assert b'["[1]", "[]", "[]", "refused", "refused", "refused", "blocked", "blocked", "a"]' in document["body"]
    assert (
        b'<nav hidden data-bigcrawl="found"><a href="%b/one/found"></a></nav></body>' % home.encode()
        in document["body"]
    )
    about = [each["body"] for each in stored if each["WARC-Refers-To"] == document["WARC-Refers-To"]]
    note = b"renderedBy: Asker 1\r\nrenderedFor: rule\r\nrenderedRequests: blocked 2, refused 3, sent 4\r\n"
    assert any(note in body for body in about)
    assert crawl.result("warc", "compact").status == 0
    assert crawl.result("warc", "verify").status == 0
    assert len([each for each in records(tmp_path / "crawl" / "warc") if each["WARC-Type"] == "conversion"]) == 2
