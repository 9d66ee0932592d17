"""The rules for checking a crawl."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ContractError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from bigcrawl_simweb.model.expectations import Expected

# RFC 9309 §2.4
_ROBOTS_MAX_AGE_MS: Final = 24 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRules:
    """The rules for checking a crawl; by default, only one request per host at a time.

    Attributes:
        expected: canonical URL -> its status, or an `Expected` with alternatives; None for any pages.
        port: the port of the URLs in `expected` and in the report.
        host_delay_ms: minimum time between an end and the next start; with more than one connection, between starts.
        host_delays_ms: longer delays for individual hosts, such as their crawl delays.
        pld_of: returns a host's PLD; None if PLDs have no rules.
        pld_connections, pld_delay_ms: as for a host, for all hosts of a PLD together.
        server_delay_ms: minimum time between two starts at one server.
        tolerance_ms: how much too short a gap, or too old a robots.txt, may be.
        retries: how often a URL may be requested again after failures; not for robots.txt.
        retry_after_max_ms: cap on the Retry-After of a 429 or 503; 0 if it may be ignored.
        allows: whether host and target may be fetched; None to ignore robots.txt.
        robots_period_ms: minimum time between two requests for a robots.txt; 0 if hosts redirect it to one another.
        is_endless: whether host and target lie in an infinite space.
        endless_max: fetches permitted from infinite spaces per PLD, or per host without `pld_of`; None for any number.
        nofollow: canonical URLs that only nofollow links lead to.
    """

    expected: Mapping[str, int | Expected] | None = None
    port: int = 80
    host_connections: int = 1
    host_delay_ms: int = 0
    host_delays_ms: Mapping[str, int] = field(default_factory=dict)
    pld_of: Callable[[str], str] | None = None
    pld_connections: int = 1
    pld_delay_ms: int = 0
    server_delay_ms: int = 0
    tolerance_ms: int = 0
    retries: int = 0
    retry_after_max_ms: int = 0
    allows: Callable[[str, str], bool] | None = None
    robots_max_age_ms: int = _ROBOTS_MAX_AGE_MS
    robots_period_ms: int = 0
    is_endless: Callable[[str, str], bool] | None = None
    endless_max: int | None = None
    nofollow: Collection[str] = frozenset()

    def __post_init__(self) -> None:
        for name in ("host_connections", "pld_connections"):
            if (value := getattr(self, name)) < 1:
                raise ContractError(f"{name} is {value}; must be at least 1")
