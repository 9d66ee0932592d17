"""The rules that a crawl is checked against."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ContractError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from bigcrawl.simweb.model.expected import Expected

# RFC 9309 §2.4: a cached robots.txt should not be used longer than this.
_ROBOTS_MAX_AGE_MS: Final = 24 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules that a crawl is checked against; by default, only one request per host at a time.

    Attributes:
        expected: canonical URL -> status, for everything that should be fetched. Instead of a status there may be an
            `Expected`, which lists several right ones (499: the client may give up) and says whether the URL may be
            left out. None: any set of pages is right.
        port: the port of the URLs in `expected` and in the report.
        host_connections: how many requests a host may have to answer at once, at least 1.
        host_delay_ms: minimum time between the end of an exchange of a host and the start of the next; with more than
            one connection, between their starts.
        host_delays_ms: larger delays of single hosts, such as their crawl delay.
        pld_of: returns the pay-level domain of a host; None: PLDs have no rules of their own.
        pld_connections: like `host_connections`, for all hosts of a PLD together.
        pld_delay_ms: like `host_delay_ms`, for all hosts of a PLD together.
        server_delay_ms: minimum time between two starts at one server.
        tolerance_ms: by how much a gap may fall short of its delay, and robots.txt be too old.
        retries: how many times in total a URL may be requested again after failed answers: 429, 5xx, and those that
            could not be received whole. Does not apply to robots.txt, which may have to be requested for days.
        retry_after_max_ms: up to how long Retry-After must be obeyed after a 429 or 503; 0: not at all.
        allows: whether host and target may be fetched; None: robots.txt is ignored.
        robots_max_age_ms: how old the robots.txt may be when a page is fetched.
        robots_period_ms: for how long a received robots.txt must not be requested again. Use 0, no rule, if the
            robots.txt of one host redirects to that of another.
        is_endless: whether host and target lie in an infinite space, where any page is right and none is required.
        endless_max: how many URLs of infinite spaces may be fetched for each PLD, or for each host without `pld_of`;
            None: any number.
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
