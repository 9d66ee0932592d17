"""Describes the delays in force in one line of the log, with the setting behind each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.config import Config


def delays_text(config: Config, ruled: int) -> str:
    return "delays: " + ("; ".join(_delay_texts(config, ruled)) or "none")


def _delay_texts(config: Config, ruled: int) -> Iterator[str]:
    polite, pace = config.politeness, config.pace
    if polite.host_delay_ms:
        rests = "a host rests" if polite.host_connections == 1 else "fetches from one host start at least"
        pages = polite.connection_pages
        rest = "after each fetch" if pages == 1 else f"after up to {pages} pages (BIGCRAWL_CONNECTION_PAGES)"
        how = rest if polite.host_connections == 1 else "apart"
        yield _scaled_text(rests, polite.host_delay_ms, polite.host_delay_min_ms, how, "BIGCRAWL_HOST_DELAY")
    if polite.server_delay_ms:
        starts = "fetches from one IP address start at least"
        yield _scaled_text(starts, polite.server_delay_ms, polite.server_delay_min_ms, "apart", "BIGCRAWL_SERVER_DELAY")
    if pace.pld_delay_ms:
        yield (
            f"fetches from one pay-level domain start at least {_seconds_text(pace.pld_delay_ms)} apart "
            f"(BIGCRAWL_PLD_DELAY)"
        )
    if pace.group and pace.group_delay_ms:
        yield f"fetches from one group start at least {_seconds_text(pace.group_delay_ms)} apart (BIGCRAWL_GROUP_DELAY)"
    if polite.download_factor:
        times = f"{polite.download_factor:g} times"
        yield f"a host rests at least {times} as long as its last download took (BIGCRAWL_DOWNLOAD_FACTOR)"
    if ruled:
        yield f"{ruled:,} hosts or domains have delays of their own (BIGCRAWL_DELAY_RULES, `scrapy frontier delay`)"
    if polite.obey_robots and polite.crawl_delay_max_ms:
        yield f"a robots.txt may ask for up to {_seconds_text(polite.crawl_delay_max_ms)} (BIGCRAWL_CRAWL_DELAY_MAX)"
    if pace.speed:
        yield f"the whole crawl keeps to a speed of {pace.speed} (BIGCRAWL_SPEED)"


def _scaled_text(what: str, delay_ms: int, floor_ms: int, how: str, setting: str) -> str:
    if floor_ms >= delay_ms:
        return f"{what} {_seconds_text(delay_ms)} {how} ({setting})"
    return (
        f"{what} {_seconds_text(delay_ms)} {how}, down to {_seconds_text(floor_ms)} as budgets grow ({setting}, "
        f"{setting}_MIN)"
    )


def _seconds_text(ms: int) -> str:
    return f"{ms / 1000:g} s"
