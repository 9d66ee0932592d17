"""Whose the discovered URLs are, and what of the web is the same with farms and without."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks.spam.discovery import discovered
from benchmarks.spam.origin import LogTail
from benchmarks.spam.timeline import is_home, is_spam
from benchmarks.spam.web import NO_PORT, SlowWeb, WebPlan
from bigcrawl_simweb.serve.access_log import AccessLog, LogLine

if TYPE_CHECKING:
    from pathlib import Path

PLAN = WebPlan(seed=3, hosts=40, pages=120, farms=4, latency_ms=50, seeds=5)


def fetched(url: str) -> LogLine:
    host, _, path = url.removeprefix("http://").partition("/")
    return LogLine(1, 2, "127.0.0.1:5", host, "127.16.0.1", "GET", f"/{path}", 200, 100)


def test_links_of_what_was_fetched_are_discovered_once() -> None:
    """Two pages of a farm discover most; a page that was fetched twice and a robots.txt discover no more."""
    web = PLAN.web()
    home = web.seeds(NO_PORT)[0]
    farm = next(url for url in web.leads_to(home, NO_PORT) if is_spam(url))
    other = next(url for url in web.leads_to(farm, NO_PORT) if url != farm)
    lines = [fetched(url) for url in (home, farm, farm, other)]
    found = discovered(web, [*lines, fetched(home + "robots.txt")])
    ordinary = {home, *web.leads_to(home, NO_PORT)} - {farm}
    spam = {farm, *web.leads_to(farm, NO_PORT), *web.leads_to(other, NO_PORT)}
    assert found == (len(ordinary), len(spam))
    assert found.spam_share == pytest.approx(len(spam) / (len(spam) + len(ordinary)))
    assert len(spam) > 200


def test_seeds_lead_to_the_same_legitimate_urls_without_farms() -> None:
    """Sides are compared by the time that one and the same set of URLs takes; it holds no spam."""
    reachable = PLAN.reachable()
    assert reachable == WebPlan(3, 40, 120, 0, 50, 5).reachable()
    assert len(reachable) > 100
    assert not any(map(is_spam, reachable))
    assert len(PLAN.seeds_of(PLAN.web(), NO_PORT)) == 5
    assert WebPlan.from_json(PLAN.as_json()) == PLAN


def test_shared_domains_have_the_same_homes_with_spam_and_without() -> None:
    """Without farms nothing leads to made-up directories either; homes and all else are the same."""
    spoilt, clean = replace(PLAN, homes=2), replace(PLAN, farms=0, homes=2)
    assert spoilt.reachable() == clean.reachable() > PLAN.reachable()
    assert set(filter(is_home, spoilt.reachable())) == spoilt.reachable() - PLAN.reachable()
    shared = spoilt.web().shared_hosts()
    assert shared == clean.web().shared_hosts()
    for plan, has_spam in ((spoilt, True), (clean, False)):
        web = plan.web()
        leads = {link for seed in web.seeds(NO_PORT) for link in web.leads_to(seed, NO_PORT)}
        assert any(is_spam(link) and link.split("/")[2] in shared for link in leads) == has_spam


def test_every_answer_takes_its_time() -> None:
    """Pages, farms, robots.txt and what is not there: no answer is sooner than the latency."""
    web = PLAN.web()
    home = web.name_of(0)
    farm = next(url for url in web.leads_to(f"http://{home}/", NO_PORT) if is_spam(url))
    slow = SlowWeb(web, 50)
    for host, target in ((home, "/"), (home, "/robots.txt"), (home, "/nothing"), (farm[7:-1], "/")):
        answer = slow.answer(host, target, NO_PORT)
        assert answer.delay_ms >= 50
        assert answer.body == web.answer(host, target, NO_PORT).body
    assert slow.address_of(home) == web.address_of(home) is not None


def test_a_growing_log_is_read_line_by_line(tmp_path: Path) -> None:
    """Each line once, none before it is whole, and none that the crawler gave up."""
    path = tmp_path / "access.log"
    log, tail = AccessLog(path), None
    tail = LogTail(path)
    assert tail.answered() == set()
    log.write(fetched("http://a.example/1"))
    log.write(fetched("http://a.example/2")._replace(status=499))
    with path.open("a") as file:
        file.write("1\t2\t127.0.0.1:5\tb.example\t127.16.0.1\tGET\t/3\t20")
    assert tail.answered() == {"http://a.example/1"}
    with path.open("a") as file:
        file.write("0\t100\t-\t0\n")
    assert tail.answered() == {"http://b.example/3"}
    tail.close()
    log.close()
