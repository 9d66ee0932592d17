"""The probe answers before there is an engine, with Scrapy's private slot, and without it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.utils.test import get_crawler

from bigcrawl.scheduler.adapter.engine_probe import EngineProbe

REQUEST = Request("http://a.example/")


def probe_of(engine: Any) -> EngineProbe:
    return EngineProbe(SimpleNamespace(engine=engine))  # type: ignore[arg-type]


def engine_with(**slot: Any) -> SimpleNamespace:
    """What Scrapy 2.19's engine looks like from here."""
    return SimpleNamespace(_slot=SimpleNamespace(**slot), running=True, scraper=SimpleNamespace(slot=object()))


def test_probe_answers_before_the_engine_exists() -> None:
    """A crawler that has not begun: nothing runs, nothing closes, and waking does nothing."""
    probe = EngineProbe(get_crawler(Spider))
    assert probe.has_ended(REQUEST)
    assert not probe.is_closing()
    assert not probe.is_paused()
    probe.wake()


def test_request_has_ended_when_it_left_the_slot() -> None:
    """In progress until callbacks and pipelines are done with it."""
    assert not probe_of(engine_with(inprogress={REQUEST})).has_ended(REQUEST)
    assert probe_of(engine_with(inprogress=set())).has_ended(REQUEST)


@pytest.mark.parametrize(("active", "scraped", "ended"), [(1, 0, False), (0, 1, False), (0, 0, True)])
def test_request_has_ended_is_known_without_the_slot(active: int, scraped: int, ended: bool) -> None:
    """Without the private slot, downloader and scraper together give the same answer."""
    engine = SimpleNamespace(
        _slot=None,
        running=True,
        downloader=SimpleNamespace(active={REQUEST} if active else set()),
        scraper=SimpleNamespace(slot=SimpleNamespace(active={REQUEST} if scraped else set())),
    )
    assert probe_of(engine).has_ended(REQUEST) is ended


def test_closing_is_seen_from_its_first_moment() -> None:
    """The slot's `closing` is set before anything else; without one, an engine that does not run closes."""
    assert not probe_of(engine_with(closing=None)).is_closing()
    assert probe_of(engine_with(closing=object())).is_closing()
    assert probe_of(SimpleNamespace(_slot=None, running=False)).is_closing()


def test_a_stop_is_seen_of_a_crawler_that_was_started() -> None:
    """An engine that is made by hand has a crawler that never crawls, and is not stopped."""
    crawler = get_crawler(Spider)
    probe = EngineProbe(crawler)
    assert not probe.is_stopped()
    crawler.crawling = crawler._started = True  # as `crawl` does
    assert not probe.is_stopped()
    crawler.crawling = False  # as a signal does
    assert probe.is_stopped()


def test_a_pause_is_seen() -> None:
    """Whoever has paused the engine."""
    assert probe_of(SimpleNamespace(paused=True)).is_paused()
    assert not probe_of(SimpleNamespace(paused=False)).is_paused()


def test_engine_is_woken_unless_it_opens_or_closes() -> None:
    """A slot must not be asked to start requests then; one without `nextcall` has its heartbeat."""
    woken: list[int] = []
    nextcall = SimpleNamespace(schedule=lambda: woken.append(1))
    probe_of(engine_with(nextcall=nextcall, closing=None)).wake()
    probe_of(engine_with(nextcall=nextcall, closing=object())).wake()
    opening = engine_with(nextcall=nextcall, closing=None)
    opening.scraper.slot = None
    probe_of(opening).wake()
    probe_of(engine_with(closing=None)).wake()
    assert woken == [1]
