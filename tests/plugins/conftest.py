"""What the tests of plug-ins share: a project on stock Scrapy, on bigcrawl, and on bigcrawl that is killed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.plugins.base import FLAKY, LANDED
from tests.plugins.runs import PYTHON, Run, Side, WatchedSite, all_of, with_bigcrawl
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

NAMES = ("stock", "ours", "killed")


@dataclass(frozen=True)
class Runs:
    """Of the three sides, by their names."""

    stock: Run
    ours: Run
    killed: Run


@dataclass
class Sides:
    """The three, each with a site and a directory of its own."""

    sites: tuple[WatchedSite, ...]
    directory: Path
    redis_urls: tuple[str, str]

    def side(self, name: str, project: str, settings: Mapping[str, Any], *, kills: bool = False) -> Side:
        at = NAMES.index(name)
        ours = with_bigcrawl(self.redis_urls[at - 1]) if at else {}
        dies_at = [(FLAKY, 2), (LANDED, 1)] if kills else []
        return Side(self.sites[at], self.directory / name, project, ours, settings, kills=dies_at)

    def pair(
        self, project: str, settings: Mapping[str, Any] | None = None, **of_one: Mapping[str, Any]
    ) -> tuple[Run, Run]:
        """Run it on stock Scrapy and on bigcrawl, with these settings and those of one side: the same items."""
        stock, ours = self._run(NAMES[:2], project, settings or {}, of_one)
        return stock, ours

    def run(self, project: str, settings: Mapping[str, Any] | None = None, **of_one: Mapping[str, Any]) -> Runs:
        """Do the same with a third one, which is killed: it gives each item at least once, and no other.

        It dies in the retry, and once more on the way of the redirect.
        """
        stock, ours, killed = self._run(NAMES, project, settings or {}, of_one)
        assert sorted(set(killed.items)) == stock.items, killed.log
        return Runs(stock, ours, killed)

    def _run(
        self,
        names: Sequence[str],
        project: str,
        settings: Mapping[str, Any],
        of_one: Mapping[str, Mapping[str, Any]],
    ) -> list[Run]:
        for site in self.sites:
            site.forget()
        sides = [
            self.side(name, project, {**settings, **of_one.get(name, {})}, kills=name == "killed") for name in names
        ]
        stock, ours, *killed = all_of(*sides)
        assert len(stock.items) > 3, stock.log
        assert ours.items == stock.items, ours.log
        return [stock, ours, *killed]


@pytest.fixture(scope="session")
def plugin_sites() -> Iterator[tuple[WatchedSite, ...]]:
    if not PYTHON:
        pytest.skip("needs the plug-ins: make test-plugins")
    with WatchedSite("127.84.3") as one, WatchedSite("127.84.4") as two, WatchedSite("127.84.5") as three:
        yield one, two, three


@pytest.fixture
def sides(plugin_sites: tuple[WatchedSite, ...], tmp_path: Path) -> Iterator[Sides]:
    """With a Redis for each crawl: those that meet wait for each other."""
    with PrivateRedis() as one, PrivateRedis() as other:
        yield Sides(plugin_sites, tmp_path, (one.url, other.url))
