"""robots.txt is ignored by one setting with one value, and by nothing else; each attempt is told what it does."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.robots.cases import moved
from tests.integration.robots.origin import Answer, Origin
from tests.support.running import warm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.robots.origin import Host

SPIDER = Path(__file__).with_name("careless.py")
CLOSED = {f"/no/{number}" for number in range(1, 6)}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with Origin(tmp_path) as origin:
        listening = origin.listen(0)
        listening.answers = {
            "/robots.txt": (Answer(200, b"User-agent: *\nDisallow: /no\n"),),
            "/leads-there": (moved("/no/5", 302),),
        }
        yield listening


def crawl(work: Path, host: Host, **settings: object) -> str:
    """Run the careless spider; its log."""
    own = {
        "BIGCRAWL_STATE_DIR": work / "state",
        "BIGCRAWL_WARC_DIR": "",
        "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": 1,
        "BIGCRAWL_HOST_DELAY": 0,
        "BIGCRAWL_PARTITIONS": 8,
        "ROBOTSTXT_OBEY": "False",
        **settings,
    }
    options = [word for name, value in own.items() for word in ("-s", f"{name}={value}")]
    words = ["scrapy", "runspider", str(SPIDER), "-a", f"origin={host.origin}", *options]
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "bigcrawl.settings"}
    done = warm.run(words, env=environment, cwd=work)
    return done.stdout + done.stderr


def test_nothing_that_scrapy_knows_switches_robots_off(tmp_path: Path, host: Host) -> None:
    """Settings of the command line and of the spider, meta, verbatim dots, a redirect: no closed page is fetched."""
    log = crawl(tmp_path, host)
    assert set(host.asked) == {"/robots.txt", "/ok", "/leads-there"}
    assert log.count("ROBOTSTXT_OBEY = False has no effect: robots.txt is obeyed") == 1
    assert log.count("dont_obey_robotstxt in meta has no effect") == 1
    assert "Traceback" not in log


def test_whole_phrase_ignores_them_and_the_log_says_so(tmp_path: Path, host: Host) -> None:
    """Who owns the hosts fetches all, and no robots.txt."""
    log = crawl(tmp_path, host, BIGCRAWL_ROBOTS="ignore-i-own-these-hosts")
    assert {target.replace("/a/../", "/") for target in host.asked} == {"/ok", "/leads-there", *CLOSED}
    assert log.count("robots.txt is IGNORED") == 1
    assert not re.search("ROBOTSTXT_OBEY.* has no effect|meta has no effect", log)


@pytest.mark.parametrize("value", ["ignore", "False", "Ignore-I-Own-These-Hosts"])
def test_any_other_value_ends_the_start(tmp_path: Path, host: Host, value: str) -> None:
    """Neither obeyed nor ignored by guess: nothing is fetched, and the log says which values there are."""
    log = crawl(tmp_path, host, BIGCRAWL_ROBOTS=value)
    assert host.asked == []
    assert f"BIGCRAWL_ROBOTS is {value!r}; must be one of obey, ignore-i-own-these-hosts" in log
