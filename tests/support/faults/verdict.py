"""What speaks against a crawl that faults happened to: the server's log, the nodes' logs, and the WARC files."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from bigcrawl.simweb.check.checker import Rules, check
from bigcrawl.warc.recovery import recover
from tests.support.crawling.everything import stored
from tests.support.crawling.verdicts import without_untold_gaps
from tests.support.faults.world import DEADLINE_S, DELAY_MS

if TYPE_CHECKING:
    from bigcrawl.simweb.check.checker import Exchange, Report
    from tests.support.faults.world import World


def wrong(world: World) -> list[str]:
    """What the server's log, the nodes' logs and the WARC files say against the crawl."""
    report = held_to_the_rules(world)
    exchanges = world.web.exchanges()
    allowed = world.repeats.allowed(exchanges, world.web.saved.port)
    more: Counter[str] = Counter()
    for again in report.refetched:
        more[again.url] += again.times - 1
    for retried in report.over_retried:
        more[retried.url] += retried.retries - retried.allowed
    world.say(f"{more.total()} fetched again, {allowed.total()} might have been")
    over = more - allowed
    problems = [f"fetched again though it may not be: {url}: {fetches_of(url, exchanges)}" for url in over]
    if report.kinds - {"refetched", "over_retried"}:
        problems.append(str(replace(report, refetched=(), over_retried=())))
    return problems + tracebacks(world) + unstored(world)


def fetches_of(url: str, exchanges: list[Exchange]) -> str:
    """When a URL was fetched, for a reader of the story."""
    found = [each for each in exchanges if url.endswith(each.target) and f"//{each.host}:" in url]
    return ", ".join(f"{each.start_ms} to {each.end_ms} status {each.status}" for each in found)


def held_to_the_rules(world: World) -> Report:
    web = world.web
    rules = Rules(
        expected=web.expected(),
        port=web.saved.port,
        host_delay_ms=DELAY_MS,
        host_delays_ms=web.web.crawl_delays_ms(),
        retries=2,
        allows=web.web.allows,
    )
    return without_untold_gaps(check([given_up(each, world.asleep_ms) for each in web.exchanges()], rules), DELAY_MS)


def given_up(each: Exchange, asleep_ms: list[tuple[int, int]]) -> Exchange:
    """A node that is stopped cannot close its connections; others leave its hosts alone for the fetch deadline."""
    if not any(each.start_ms <= began_ms < each.end_ms for began_ms, _ in asleep_ms):
        return each
    return replace(each, end_ms=min(each.end_ms, each.start_ms + DEADLINE_S * 1000))


def tracebacks(world: World) -> list[str]:
    """Unhandled exceptions in any log of any node, the first of each."""
    found = []
    for node in world.nodes:
        for log in sorted(node.crawl.directory.glob("log*.txt")):
            before, mark, after = log.read_text(errors="replace").partition("Traceback")
            if mark:
                found.append(f"{log}: ...{before[-300:]}{mark}{after[:3000]}")
    return found


def unstored(world: World) -> list[str]:
    """Pages that count as fetched and are in no WARC file."""
    recover(world.directory / "warc")
    missing = world.web.expected().keys() - stored(world.directory / "warc").keys()
    return [f"not in any WARC file: {sorted(missing)[:10]}, {len(missing)} in all"] if missing else []
