"""Crawls with a real Chromium of a web whose pages are written by scripts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from bigcrawl_rendering.processes import is_alive, kill_all
from tests.annexes.rendering.reading import counted, records
from tests.support.browsing.rendering import AGENT, DELAY_S, PATIENT, browsers_of, rendering
from tests.support.crawling.crawls import Crawl, second_process_of
from tests.support.running.processes import no_strays_below, wait_until
from tests.support.servers.scripted_web import INSIDE, TRACKER, scripted_web

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.servers.scripted_web import ScriptedWeb

pytestmark = pytest.mark.system
PAGES_EACH = 7  # the least with three levels of links
DEATHS = 20


def fetched(web: ScriptedWeb) -> Counter[str]:
    """How often each page was asked for."""
    return Counter(web.bases[each.host] + each.path for each in web.log if each.path.startswith("/p/"))


def test_all_pages_are_found_politely_and_stored_both_ways(tmp_path: Path) -> None:
    """Coverage is 1, and without rendering it is far from that.

    No log has a request that is too soon, forbidden, of another agent, or to the tracker or the address inside; each
    host was asked for each page once. The document of a page refers to its answer, and what scripts asked for is
    stored.
    """
    with no_strays_below(tmp_path), scripted_web(PAGES_EACH) as web:
        plain = Crawl(tmp_path / "plain", web.seeds, rendering(web, BIGCRAWL_RENDER="off"), name="plain")
        assert plain.run() == 0
        assert len(set(fetched(web)) & web.expected()) < len(web.expected()) / 2
        web.log.clear()
        crawl = Crawl(tmp_path / "crawl", web.seeds, rendering(web, **PATIENT))
        assert crawl.run(1_800) == 0, crawl.log.read_text()
        assert set(fetched(web)) >= web.expected()
        assert set(fetched(web).values()) == {1}
        assert web.faults(DELAY_S - 0.01, AGENT) == []
        assert not web.asked(INSIDE)
        assert not web.asked(TRACKER)
        assert Counter(each.path for each in web.asked("client-list"))["/app.js"] == 1
    counts = counted(crawl.log.read_text())
    assert counts["pages"] > len(web.expected()) / 2
    assert counts["requests/refused"] > 0
    stored = records(tmp_path / "crawl" / "warc")
    responses = {each["WARC-Record-ID"]: each for each in stored if each["WARC-Type"] in ("response", "revisit")}
    conversions = [each for each in stored if each["WARC-Type"] == "conversion"]
    assert len(conversions) == counts["pages"]
    for each in conversions:
        assert responses[each["WARC-Refers-To"]]["WARC-Target-URI"] == each["WARC-Target-URI"]
    document = next(each["body"] for each in conversions if each["WARC-Target-URI"].startswith(web.bases["fetched"]))
    assert b'<a href="/p/1">Page 1</a>' in document
    assert any("/api?page=0" in each["WARC-Target-URI"] for each in responses.values())
    assert crawl.result("warc", "verify").status == 0


@pytest.mark.timeout(2_000)
def test_a_browser_that_dies_again_and_again_loses_nothing(tmp_path: Path) -> None:
    """One dies whenever the crawl has got on; each fourth time it is one of a suspect, or only its driver dies."""
    with (
        no_strays_below(tmp_path),
        scripted_web(DEATHS) as web,
        Crawl(tmp_path / "crawl", web.seeds, rendering(web, **PATIENT), cold=True) as crawl,
    ):
        process = crawl.start()
        killed: list[int] = []

        def kill_one() -> bool:
            if not killed or len(web.log) >= killed[-1] + 4:
                browsers = sorted(browsers_of(process.pid), key=lambda each: "alone" in each.mark)
                if browsers:
                    first, *others = browsers[-1 if len(killed) % 4 == 3 else 0].processes
                    kill_all(others[-1:] if len(killed) % 4 == 1 else [first])
                    killed.append(len(web.log))
            return len(killed) >= DEATHS or process.poll() is not None

        wait_until(kill_one, "browsers have died", 1_800)  # each starts anew
        assert crawl.wait(1_800) == 0, crawl.log.read_text()
        counts = counted(crawl.log.read_text())
        assert set(fetched(web)) >= web.expected(), counts
        assert counts["browsers/died"] > 10  # one that is killed while it starts is not counted
        assert "raw/suspect" not in counts
        assert web.faults(DELAY_S - 0.01, AGENT) == []


def test_a_node_that_is_killed_leaves_no_browser_and_loses_nothing(tmp_path: Path) -> None:
    """Two nodes share the crawl; one of them dies while it renders."""
    settings = {**PATIENT, "BIGCRAWL_PARTITIONS": 16, "BIGCRAWL_LEASE_SECONDS": 5}
    with no_strays_below(tmp_path), scripted_web(PAGES_EACH) as web:
        first = Crawl(tmp_path / "crawl", web.seeds, rendering(web, **settings), cold=True)
        with first, second_process_of(first) as second:
            second.cold = True
            begun = first.start()
            wait_until(lambda: len(web.log) > 20, "the crawl is under way", 600)
            second.start()
            wait_until(lambda: bool(browsers_of(begun.pid)) and len(web.log) > 60, "browsers are at work", 600)
            browsers = [process for each in browsers_of(begun.pid) for process in each.processes]
            first.kill()
            wait_until(lambda: not any(map(is_alive, browsers)), "its browsers have ended", 600)
            assert second.wait(1_800) == 0, second.log.read_text()
        assert set(fetched(web)) >= web.expected()
        assert not web.asked(INSIDE)
        assert not any(each.path.startswith("/private") for each in web.log)


def test_a_node_that_stops_returns_its_pages_and_goes_on_later(tmp_path: Path) -> None:
    """A page that is rendered at SIGTERM is rendered by the next start, and no browser is left."""
    with no_strays_below(tmp_path), scripted_web(PAGES_EACH) as web:
        crawl = Crawl(tmp_path / "crawl", web.seeds, rendering(web, **PATIENT), cold=True)
        process = crawl.start()
        wait_until(lambda: bool(browsers_of(process.pid)) and len(web.log) > 40, "browsers are at work", 600)
        browsers = [each for browser in browsers_of(process.pid) for each in browser.processes]
        crawl.terminate()
        assert crawl.wait(600) == 0, crawl.log.read_text()
        wait_until(lambda: not any(map(is_alive, browsers)), "its browsers have ended", 600)
        assert "Traceback" not in crawl.log.read_text()
        assert not web.expected() <= set(fetched(web))
        assert crawl.run(1_800) == 0, crawl.log.read_text()
        assert set(fetched(web)) >= web.expected()
        assert web.faults(DELAY_S - 0.01, AGENT) == []


def test_pages_that_hang_or_grow_are_bounded_and_others_are_not_held_up(tmp_path: Path) -> None:
    """A page whose script never ends is given to the spider as it was fetched, with its links; so is a greedy one."""
    with no_strays_below(tmp_path), scripted_web(PAGES_EACH) as web:
        base = web.bases["written"]
        web.extra["/hang"] = (
            "<div id=root></div><a href=/after>x</a><script>setTimeout(() => { for (;;); }, 50)</script>"
        )
        web.extra["/greedy"] = (
            "<div id=root></div><a href=/after2>x</a><script>const all = []; const grow = () => { "
            "for (let i = 0; i < 50; i++) all.push(new Uint8Array(1e6).fill(1)); setTimeout(grow) }; grow()</script>"
        )
        web.extra |= {"/after": "<p>after", "/after2": "<p>after"}
        settings = rendering(
            web,
            BIGCRAWL_RENDER_SECONDS=30,  # what hangs takes that twice, and other pages may need it on a busy machine
            BIGCRAWL_RENDER_MEMORY=700,
            BIGCRAWL_RENDER_ALWAYS=f'["{base}/hang", "{base}/greedy"]',
        )
        crawl = Crawl(tmp_path / "crawl", [f"{base}/hang", f"{base}/greedy", web.seeds[1]], settings)
        assert crawl.run(1_800) == 0, crawl.log.read_text()
        asked = {each.path for each in web.log}
        assert {"/hang", "/greedy", "/after", "/after2", f"/p/{PAGES_EACH - 1}"} <= asked
        counts = counted(crawl.log.read_text())
        assert counts["raw/suspect"] >= 1, counts
        assert counts["pages"] >= PAGES_EACH
