"""Delays set by hand for hosts and pay-level domains (docs/settings.md), and all delays in force as a line of the log.

Rules come from the settings and from a Redis hash (name -> JSON), which may change during the crawl; `{}` there removes
a rule.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import ConfigError
from bigcrawl.json_text import read_json
from bigcrawl.scheduler.rules.names import BELOW, URL_PATTERN, parse_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bigcrawl.config import Config

WHERE: Final = "BIGCRAWL_DELAY_RULES"
HOSTS_CACHED_MAX: Final = 100_000
_SECONDS_MAX: Final = 86_400
_LIMITS: Final = ("delay", "pld_delay")


class DelayRule(NamedTuple):
    delay_ms: int | None = None
    pld_delay_ms: int | None = None

    def as_seconds(self) -> dict[str, float]:
        return {limit: ms / 1000 for limit, ms in zip(_LIMITS, self, strict=True) if ms is not None}

    def to_json(self) -> bytes:
        return json.dumps(self.as_seconds()).encode()


NO_DELAYS: Final = DelayRule()


class DelayBook:
    def __init__(self, rules: Mapping[str, DelayRule], pld: Callable[[str], str]) -> None:
        self._rules = dict(rules)
        self._pld = pld
        self.has_pld_delays = any(rule.pld_delay_ms is not None for rule in rules.values())
        self.of_host = lru_cache(HOSTS_CACHED_MAX)(self._look_up)

    def __len__(self) -> int:
        return len(self._rules)

    def _look_up(self, host: str) -> DelayRule:
        pld = self._pld(host)
        labels = host.split(".")
        names = [host, pld, *(BELOW + ".".join(labels[at:]) for at in range(1, len(labels)))]
        found = [rule for name in names if (rule := self._rules.get(name)) is not None]
        delay_ms = next((rule.delay_ms for rule in found if rule.delay_ms is not None), None)
        return DelayRule(delay_ms, self._rules.get(pld, NO_DELAYS).pld_delay_ms)


def parse_delays(written: Mapping[str, Mapping[str, object]], where: str = WHERE) -> dict[str, DelayRule]:
    return {
        parse_delay_name(name, where): parse_delay(limits, f"{where}[{name!r}]") for name, limits in written.items()
    }


def parse_delay_name(name: str, where: str) -> str:
    if name.startswith(URL_PATTERN):
        raise ConfigError(f"{where} has {name!r}; delays apply to hosts: must be a host, a PLD, or *. and a name")
    return parse_name(name, where)


def parse_delay(limits: Mapping[str, object], where: str) -> DelayRule:
    for limit, value in limits.items():
        if limit not in _LIMITS:
            raise ConfigError(f"{where} has an unknown {limit!r}; must be delay or pld_delay")
        if type(value) not in (int, float) or not 0 <= value <= _SECONDS_MAX:  # type: ignore[operator]
            raise ConfigError(f"{where}: {limit} is {value!r}; must be a number from 0 to {_SECONDS_MAX:,} s, e.g. 2.5")
    return DelayRule(*(round(1000 * limits[limit]) if limit in limits else None for limit in _LIMITS))  # type: ignore[operator]


def delays_in_force(
    settings: Mapping[str, DelayRule], live: Mapping[bytes, bytes]
) -> tuple[dict[str, DelayRule], list[str]]:
    """Return the current rules, and a message for each invalid rule in Redis, which is ignored."""
    rules, faults = dict(settings), []
    for name, value in live.items():
        try:
            limits = read_json(value)
            rules |= parse_delays(
                {name.decode(): limits if isinstance(limits, dict) else {"": 0}}, "the crawl's delays"
            )
        except (ConfigError, ValueError) as fault:
            faults.append(f"{fault}")
    return {name: rule for name, rule in rules.items() if rule != NO_DELAYS}, faults


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
