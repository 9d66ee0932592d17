"""Bad pages of good hosts, in real crawls: they hold up nobody; a host that fails as such is left alone."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.hosts.test_backoff import Answer, Host, serving, well
from tests.support.crawling.crawls import Crawl
from tests.support.crawling.explained import explained
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BACKOFF = 600  # one back-off, were there one, is longer than all that a crawl may take
SETTINGS: dict[str, Any] = {
    "BIGCRAWL_BACKOFF": BACKOFF,
    "BIGCRAWL_HOST_DELAY": 0.1,
    "BIGCRAWL_PARTITIONS": 4,
    "BIGCRAWL_STEP_SECONDS": 0.2,
    "CONCURRENT_REQUESTS": 4,
    "DOWNLOAD_TIMEOUT": 8,  # what a good page takes on a busy machine is less
    "RETRY_TIMES": 2,
}
GOOD = [f"/good{number}" for number in range(9)]
TRIES = 3


@contextmanager
def silent_port(address: str) -> Iterator[int]:
    """A port of the address where nobody listens, and nobody will."""
    with socket.socket() as taken:
        taken.bind((address, 0))
        yield taken.getsockname()[1]


def answer(path: str) -> Answer:
    return {"/busy": (503, {}), "/broken": (500, {})}.get(path, (200, {}))


def test_bad_pages_hold_up_nobody(tmp_path: Path) -> None:
    """A 503, a 500, a page that never ends and a dead port, before the good ones: no back-off at all."""
    with no_strays_below(tmp_path), serving("127.0.62.1", answer) as host, silent_port("127.0.62.1") as port:
        host.rests["/slow"] = 24
        good, bad = host.urls(*GOOD), [*host.urls("/busy", "/slow", "/broken"), f"http://127.0.62.1:{port}/"]
        crawl = Crawl(tmp_path / "crawl", bad + good, SETTINGS)
        with crawl:
            assert crawl.run(BACKOFF) == 0
        asked = [path for _, path, _ in host.pages]
        assert sorted(set(asked)) == sorted([*GOOD, "/busy", "/slow", "/broken"])
        last_good = max(asked.index(path) for path in GOOD)
        for path in ("/busy", "/slow", "/broken"):
            tries = [at for at, one in enumerate(asked) if one == path]
            assert len(tries) == TRIES
            assert tries[1] > last_good, "its second try is behind all others"
        said = explained(crawl, good + bad)
        assert [said[url]["outcome"]["name"] for url in bad] == [
            "status:503",
            "error:timeout",
            "status:500",
            "dropped:unreachable",
        ]
        assert {said[url]["outcome"]["name"] for url in good} == {"status:200"}
        assert {one["host_state"] for one in said.values()} == {"well"}


@pytest.mark.long("waits for a back-off; test_backoff has one of fewer pages")
def test_host_that_fails_page_after_page_is_left_alone(tmp_path: Path) -> None:
    """Without any Retry-After: after a few pages at most it has its back-off, and nothing of it is lost."""
    backoff_s = 5

    def overloaded(path: str) -> Answer:
        # Before it fails, a machine that stands still may leave it alone for as long.
        is_over = any(later - at >= backoff_s for (at, *_), (later, *_) in pairwise(host.pages[4:]))
        return (503, {}) if 4 <= len(host.pages) < 20 and not is_over else well(path)

    host: Host
    with no_strays_below(tmp_path), serving("127.0.62.2", overloaded) as host:
        crawl = Crawl(tmp_path / "crawl", host.urls(*GOOD), {**SETTINGS, "BIGCRAWL_BACKOFF": backoff_s})
        with crawl:
            assert crawl.run(300) == 0
        refused = [row for row in host.pages if row[2] == 503]
        assert 1 <= len(refused) <= 4 + 1, "the last one may be asked before it is known"
        assert sorted(path for _, path, code in host.pages if code == 200) == sorted(GOOD)
        assert {said["outcome"]["name"] for said in explained(crawl, host.urls(*GOOD)).values()} == {"status:200"}
