from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bigcrawl.config import Config
    from bigcrawl.views.standstill import CrawlFacts


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
