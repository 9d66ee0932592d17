"""Finds the reasons why a crawl fetches nothing, as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bigcrawl.config import Config
    from bigcrawl.scheduler.crawl.survey import Survey


class CrawlFacts(NamedTuple):
    """The state of a crawl.

    Attributes:
        reports: the last report of each live node.
        starting: the nodes that are running start requests.
        paused: the nodes that are paused; "" stands for the whole crawl.
        pages_max: BIGCRAWL_MAX_PAGES; 0 for no limit.
        awaited: if no host is due now, the one that is due first.
    """

    seen: Survey
    reports: Mapping[str, Mapping[str, Any]]
    finished: bool = False
    importing: bool = False
    starting: tuple[str, ...] = ()
    paused: frozenset[str] = frozenset()
    has_speed: bool = True
    speed_by_hand: bool = False
    pages_max: int = 0
    awaited: Mapping[str, Any] | None = None

    @property
    def rate(self) -> float:
        return float(sum(report.get("rate", 0.0) for report in self.reports.values()))


def standstill_reasons(facts: CrawlFacts) -> list[str]:
    """Return why nothing is fetched, most important first; while pages arrive, only orders that will stop it."""
    orders = list(_reasons_by_order(facts))
    if facts.rate > 0:
        return orders
    seen = facts.seen
    if facts.finished:
        return ["the crawl is finished" + _left_behind(seen)]
    reasons = [*orders, *_reasons_of_nodes(facts)]
    if seen.holdup:
        reasons.append(seen.holdup)
    if facts.reports and not orders:
        reasons += _reasons_of_urls(facts)
    return reasons or ["it is not known; the nodes may have begun a moment ago"]


def _reasons_by_order(facts: CrawlFacts) -> Iterator[str]:
    if facts.importing:
        yield "an import into this crawl was not completed: run it again"
    elif "" in facts.paused:
        yield "it is paused; `scrapy frontier resume` lets it continue"
    if not facts.has_speed:
        remedy = "set by hand; `scrapy frontier speed --unset` lifts it" if facts.speed_by_hand else "by BIGCRAWL_SPEED"
        yield f"its speed is 0 for now, {remedy}"
    if 0 < facts.pages_max <= facts.seen.pages:
        yield f"it has the {facts.pages_max:,} pages of BIGCRAWL_MAX_PAGES"


def _reasons_of_nodes(facts: CrawlFacts) -> Iterator[str]:
    seen = facts.seen
    if not facts.reports:
        yield "no node runs"
        return
    for name, report in sorted(facts.reports.items()):
        if name in facts.paused:
            yield f"node {name} is paused; `scrapy frontier resume {name}` lets it continue"
        if report.get("trouble"):
            yield f"node {name} waits: {report['trouble']}"
    if left := seen.partitions - seen.owned:
        yield f"{left:,} partitions have no owner; nodes take them over within a lease"
    crowded = sorted(name for name, report in facts.reports.items() if report.get("crowded"))
    if crowded:
        yield f"outbox or inboxes are full, so nothing is taken: {', '.join(crowded)}"


def _reasons_of_urls(facts: CrawlFacts) -> Iterator[str]:
    seen = facts.seen
    for node in facts.starting:
        yield f"node {node} runs the start requests"
    stages = _urls_by_stage(facts)
    if started := stages.get("started", 0) + stages.get("robots", 0):
        yield f"{started:,} URLs are being fetched, parsed or piped"
    if ended := stages.get("ended", 0):
        yield f"{ended:,} pages are being stored"
    if held := stages.get("waiting", 0) + stages.get("buffered", 0):
        yield f"{held:,} URLs wait at a node for addresses, robots.txt, the gap of a server, or their time"
    if seen.hosts_ready and not seen.urls_taken:
        yield f"{seen.hosts_ready:,} hosts are ready, and no node has taken a URL of theirs yet"
    if facts.awaited:
        yield _rest_text(seen, facts.awaited)
    if seen.inboxes_unfolded and not seen.urls_queued:
        yield f"what {seen.inboxes_unfolded:,} inboxes hold is not merged yet"
    timed = min(seen.counts["revisits"], seen.urls_disk)
    if seen.urls_disk > timed and not (seen.urls_queued or seen.urls_taken or seen.inboxes_unfolded):
        yield f"{seen.urls_disk - timed:,} URLs wait on disk for the next steps"
    if timed:
        yield f"{timed:,} pages wait for the time of their next visit"
    if seen.is_empty and not seen.holdup and not facts.starting:
        yield "nothing is left to fetch" + _left_behind(seen)


def _urls_by_stage(facts: CrawlFacts) -> dict[str, int]:
    sums: dict[str, int] = {}
    for report in facts.reports.values():
        for stage, count in report.get("stages", {}).items():
            sums[stage] = sums.get(stage, 0) + count
    return sums


def _rest_text(seen: Survey, awaited: Mapping[str, Any]) -> str:
    some = f"{seen.hosts_waiting:,} hosts wait for their time" if seen.hosts_waiting != 1 else "the only host waits"
    text = f"{some}; the next, {awaited['host']}, is due in {awaited['due_in_s']:,.0f} s"
    if not (failures := awaited["failures"]):
        return text
    times = "once" if failures == 1 else f"{failures:,} times in a row"
    return f"{text}, because it failed {times} ({awaited['why']})"


def _left_behind(seen: Survey) -> str:
    parts = [
        f"{seen.counts['withheld']:,} URLs are withheld" if seen.counts["withheld"] else "",
        f"{seen.hosts_retired:,} hosts are retired" if seen.hosts_retired else "",
        f"{seen.counts['dead']:,} URLs are dead letters" if seen.counts["dead"] else "",
    ]
    said = ", ".join(filter(None, parts))
    return f"; {said}" if said else ""


def done_in_s(facts: CrawlFacts) -> float | None:
    """Estimate the time to fetch all waiting URLs at the present rate; None if nothing is fetched."""
    waiting = facts.seen.waiting + facts.seen.urls_taken
    return round(waiting / facts.rate, 1) if facts.rate > 0 else None


class PossibleRate(NamedTuple):
    """An upper bound of pages a second, None if unknown; `why` is what limits it, or why it is unknown."""

    per_s: float | None
    why: str


def possible_rate(facts: CrawlFacts, config: Config, speed: float | None) -> PossibleRate:
    """Estimate from the nodes' fetches, hosts with URLs in Redis, and the `speed` set, by Little's law."""
    seen, reports = facts.seen, [report for node, report in facts.reports.items() if node not in facts.paused]
    if not reports or "" in facts.paused or not facts.has_speed:
        return PossibleRate(0.0, "nothing is fetched now")
    bounds = {} if speed is None else {"the speed set": speed}
    started = sum(report.get("stages", {}).get("started", 0) for report in reports)
    if facts.rate > 0 and started:
        fetch_s = started / facts.rate
        bounds["fetches at a time"] = sum(report.get("fetches_max", 0) for report in reports) / fetch_s
        hosts = seen.hosts_ready + seen.hosts_waiting + seen.hosts_busy
        bounds["the delays of hosts"] = hosts * _host_rate(config, fetch_s)
    if not bounds:
        return PossibleRate(None, "no page was fetched lately, so the time of a fetch is unknown")
    why = min(bounds, key=bounds.__getitem__)
    return PossibleRate(round(bounds[why], 1), why)


def _host_rate(config: Config, fetch_s: float) -> float:
    politeness = config.politeness
    delay_s = politeness.host_delay_ms / 1000
    if politeness.host_connections == 1:
        return 1 / (delay_s + fetch_s)
    return min(politeness.host_connections / fetch_s, 1 / delay_s if delay_s else float("inf"))
