"""One crawl of the benchmark: start everything, look at the log until it is time to stop, stop everything."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from benchmarks.spam.discovery import Discovered, discovered
from benchmarks.spam.even import even_share
from benchmarks.spam.load import Load, look
from benchmarks.spam.origin import LogTail, Origin
from benchmarks.spam.timeline import SHARES, Timeline, is_home, timeline_of
from benchmarks.spam.turn_log import read_turns
from benchmarks.spam.turns import Account, accounts_of
from bigcrawl_simweb.serve.access_log import read_log
from tests.support.crawling.everything import NamedCrawl, resolver_address
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.spam.web import WebPlan
    from bigcrawl_simweb.model.web import Web

_LOOK_S: Final = 2.0
_STOP_S: Final = 30.0
_TURN_LOG: Final = "turns.txt"
DIRECTORIES: Final = "directories"
_STALL_S: Final = 2.0  # a look that comes so late: the machine did something else

SETTINGS: Final[dict[str, Any]] = {
    # Every host may be asked at any time but for a breath, as if there were very many of them: what is scarce is
    # the crawler, as on the web, and not the hosts.
    "BIGCRAWL_HOST_DELAY": 0.05,
    "BIGCRAWL_CRAWL_DELAY_MAX": 0.05,
    # A turn of a partition is the shorter, the fewer PLDs it has; with 256 there would be one or two in each.
    "BIGCRAWL_PARTITIONS": 8,
    # In proportion to the web: less than a turn of all its PLDs.
    "BIGCRAWL_HOT_URLS": 1_000,
    "BIGCRAWL_STEP_SECONDS": 0.5,
    "RETRY_ENABLED": False,
    "BIGCRAWL_WARC_DIR": "",
    "TELNETCONSOLE_ENABLED": False,
}


@dataclass(frozen=True, slots=True)
class Side:
    """One way to crawl: with farms or without, by a policy; `units` may be `DIRECTORIES`, which stands for all."""

    title: str
    has_farms: bool
    policy: str
    in_degree: str = "pld"
    units: str = ""


SIDES: Final = {
    "clean": Side("without farms", has_farms=False, policy="none"),
    "clean-star": Side("without farms, budgets", has_farms=False, policy="star"),
    "star": Side("farms, budgets (star)", has_farms=True, policy="star"),
    "star-address": Side("farms, budgets (star, by address)", has_farms=True, policy="star", in_degree="address"),
    "star-shared": Side(
        "farms, budgets (star, hosts of shared domains)", has_farms=True, policy="star", units="private"
    ),
    "star-hosts": Side("farms, budgets (star, all hosts)", has_farms=True, policy="star", units="*"),
    "star-directories": Side(
        "farms, budgets (star, directories of shared domains)", has_farms=True, policy="star", units=DIRECTORIES
    ),
    "proportional": Side("farms, budgets (proportional)", has_farms=True, policy="proportional"),
    "bfs": Side("farms, no budgets (BFS)", has_farms=True, policy="none"),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What all sides have in common.

    Attributes:
        web: with the farms that sides with farms have, and the spam of its shared domains.
        concurrency: requests at a time.
        limit_s: when a crawl is stopped that has not got everything.
        settings: Scrapy settings on top of `SETTINGS`.
        prefix: a command that runs the crawl and the server, such as nice.
    """

    web: WebPlan
    concurrency: int
    limit_s: float
    settings: dict[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """What one crawl left.

    Attributes:
        timeline: by the server's log, until the crawl was told to stop.
        homes: the same, of the URLs in home directories alone; None if the web has none.
        discovered: by whom the URLs are that the pages in the log lead to.
        even_spam: spam that a share of the legitimate pages would cost, by share, were every PLD given the same.
        accounts: what each PLD of spam was given and got; none without budgets.
        loads: of Redis, in order.
        ended: why it ended.
        stalled_s: by how much looks came late. Where that is much, the machine stood still or was busy with something
            else, and times are not to be quoted.
    """

    timeline: Timeline
    homes: Timeline | None
    discovered: Discovered
    even_spam: dict[float, int]
    accounts: tuple[Account, ...]
    loads: tuple[Load, ...]
    ended: str
    stalled_s: float


class _PrefixedCrawl(NamedCrawl):
    """A crawl with a command before its own."""

    prefix: tuple[str, ...] = ()

    def command(self) -> list[str]:
        return [*self.prefix, *super().command()]


def run_side(side: Side, plan: Plan, reachable: frozenset[str], directory: Path) -> Run:
    """Crawl until every legitimate page is there, the crawl ends by itself, or its time is up.

    Args:
        side: how.
        plan: what.
        reachable: `WebPlan.reachable` of the plan's web.
        directory: for all that is written; made.

    Raises:
        RuntimeError: the crawl failed; the message says where its log is.
    """
    web_plan = plan.web if side.has_farms else replace(plan.web, farms=0)
    web = web_plan.web()
    with no_strays_below(directory), Origin(web_plan, directory / "web", resolver_address(), plan.prefix) as origin:
        seeds = web_plan.seeds_of(web, origin.port)
        settings = _settings(side, plan, web, directory)
        with _PrefixedCrawl(directory / "crawl", seeds, settings) as crawl:
            crawl.prefix = plan.prefix
            crawl.start()
            with closing(LogTail(origin.log)) as tail:
                ended, loads, stalled_s = _watch(crawl, tail, set(reachable), plan.limit_s)
            lines = list(read_log(origin.log))
            _stop(crawl)
    timeline = timeline_of(lines, reachable, web.pld_of)
    in_homes = frozenset(filter(is_home, reachable))
    homes = timeline_of(lines, in_homes, web.pld_of) if in_homes else None
    turns = read_turns(directory / _TURN_LOG)
    accounts = accounts_of(directory / "crawl" / "state" / crawl.name, settings, turns, timeline.spam_of)
    sizes = Counter(web.pld_of(url.split("/")[2]) for url in reachable).values()
    even_spam = {share: web_plan.farms * even_share(sizes, share) for share in SHARES}
    return Run(timeline, homes, discovered(web, lines), even_spam, tuple(accounts), tuple(loads), ended, stalled_s)


def _settings(side: Side, plan: Plan, web: Web, directory: Path) -> dict[str, Any]:
    directories = ",".join(f"{host}/~" for host in web.shared_hosts())
    return {
        **SETTINGS,
        "CONCURRENT_REQUESTS": plan.concurrency,
        "BIGCRAWL_BUDGET_POLICY": side.policy,
        "BIGCRAWL_IN_DEGREE": side.in_degree,
        "BIGCRAWL_BUDGET_UNITS": directories if side.units == DIRECTORIES else side.units,
        "BIGCRAWL_BUDGET_UNIT_LINKS": 3,
        "EXTENSIONS": json.dumps({"benchmarks.spam.turn_log.TurnLog": 0}),
        "BENCH_TURN_LOG": str(directory / _TURN_LOG),
        **plan.settings,
    }


def _watch(crawl: NamedCrawl, tail: LogTail, missing: set[str], limit_s: float) -> tuple[str, list[Load], float]:
    """Why the crawl ended, or is to be stopped and still runs; looks at it; and how much too late those came."""
    partitions = int(crawl.settings["BIGCRAWL_PARTITIONS"])
    loads: list[Load] = []
    stalled_s = 0.0
    with crawl.redis() as client:
        began_s = before_s = time.monotonic()
        while True:
            time.sleep(_LOOK_S)
            now_s = time.monotonic()
            late_s, before_s = now_s - before_s - _LOOK_S, now_s
            stalled_s += late_s if late_s > _STALL_S else 0
            passed_s = now_s - began_s
            missing -= tail.answered()
            if not missing:
                return "everything legitimate is fetched", loads, stalled_s
            if crawl.process is None or crawl.process.poll() is not None:
                _check_status(crawl)
                return "the crawl was finished", loads, stalled_s
            if passed_s > limit_s:
                return f"its {limit_s:.0f} s were over", loads, stalled_s
            loads.append(look(client, crawl.name, partitions, passed_s))


def _stop(crawl: NamedCrawl) -> None:
    """End the crawl as an operator does, if it runs."""
    assert crawl.process is not None
    if crawl.process.poll() is None:
        crawl.terminate()
        try:
            crawl.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"the crawl did not end within {_STOP_S:.0f} s: see {crawl.log}") from None
    _check_status(crawl)


def _check_status(crawl: NamedCrawl) -> None:
    assert crawl.process is not None
    # A crawl that has just come to its end by itself no longer handles the signal that tells it to.
    if crawl.process.returncode not in {0, -signal.SIGTERM}:
        raise RuntimeError(f"the crawl ended with status {crawl.process.returncode}: see {crawl.log}")
