"""Checks which URLs were fetched, and how often."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl_simweb.basics.addresses import origin_of
from bigcrawl_simweb.basics.exchange import ABORTED_STATUS
from bigcrawl_simweb.check.findings import BadFetch, DeepDive, OverRetry, Refetch, StatusDifference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl_simweb.basics.exchange import Exchange
    from bigcrawl_simweb.check.rules import CheckRules
    from bigcrawl_simweb.model.expectations import Expected


class _FetchState(NamedTuple):
    """The state of a URL; URLs share equal states, to save memory.

    Attributes:
        status: status of the last complete answer; 0 without one.
        is_failed: whether the last answer permits a retry.
        is_faulty: whether an answer was incomplete, so that no status can be required.
    """

    status: int = 0
    is_failed: bool = False
    is_faulty: bool = False
    retries: int = 0


_UNTRIED: Final = _FetchState()


class Coverage:
    """Records every URL of a crawl except robots.txt files. Exchanges must come in order of start."""

    def __init__(self, rules: CheckRules) -> None:
        self._rules = rules
        self._urls: defaultdict[str, dict[str, _FetchState]] = defaultdict(dict)
        self._states: dict[_FetchState, _FetchState] = {}
        self._forbidden: set[tuple[str, str]] = set()
        self._refetched: dict[tuple[str, str], Refetch] = {}
        self._over_retried: dict[tuple[str, str], OverRetry] = {}
        self._endless: Counter[str] = Counter()
        self._first_too_many: dict[str, BadFetch] = {}
        self.unexpected: list[BadFetch] = []
        self.disallowed: list[BadFetch] = []
        self.nofollowed: list[BadFetch] = []

    def __repr__(self) -> str:
        return f"Coverage({len(self._urls)} hosts, {sum(map(len, self._urls.values()))} URLs)"

    def add(self, exchange: Exchange) -> None:
        urls = self._urls[exchange.host]
        before = urls.get(exchange.target)
        if before is None:
            self._check_first(exchange)
            before = _UNTRIED
        else:
            self._record_repeat(exchange, before)
        if (exchange.host, exchange.target) in self._forbidden:
            self.disallowed.append(self._bad_fetch(exchange))
        after = _FetchState(
            before.status if exchange.is_faulty or exchange.status == ABORTED_STATUS else exchange.status,
            exchange.is_failure,
            before.is_faulty or exchange.is_faulty,
            before.retries + before.is_failed,
        )
        urls[exchange.target] = self._states.setdefault(after, after)

    @property
    def refetched(self) -> tuple[Refetch, ...]:
        return tuple(self._refetched.values())

    @property
    def over_retried(self) -> tuple[OverRetry, ...]:
        return tuple(self._over_retried.values())

    @property
    def too_deep(self) -> tuple[DeepDive, ...]:
        bound = self._rules.endless_max or 0
        return tuple(
            DeepDive(name, self._endless[name], bound, first.url, first.at_ms)
            for name, first in self._first_too_many.items()
        )

    def required(self) -> int | None:
        if self._rules.expected is None:
            return None
        return sum(isinstance(wanted, int) or wanted.required for wanted in self._rules.expected.values())

    def missing(self) -> tuple[str, ...]:
        return tuple(
            sorted(
                url
                for url, wanted, fetched in self._compare_expected()
                if (isinstance(wanted, int) or wanted.required) and not _is_covered(fetched, wanted)
            )
        )

    def wrong_status(self) -> tuple[StatusDifference, ...]:
        return tuple(
            StatusDifference(url, statuses, fetched.status)
            for url, wanted, fetched in self._compare_expected()
            if fetched.status and fetched.status not in (statuses := _expected_statuses(wanted))
        )

    def _check_first(self, exchange: Exchange) -> None:
        """Record the first request for a URL, and at most one fault."""
        rules = self._rules
        host, target = exchange.host, exchange.target
        if rules.allows is not None and not rules.allows(host, target):
            self._forbidden.add((host, target))
            return
        fetch = self._bad_fetch(exchange)
        if fetch.url in rules.nofollow:
            self.nofollowed.append(fetch)
        elif rules.expected is not None and fetch.url in rules.expected:
            return
        elif rules.is_endless is not None and rules.is_endless(host, target):
            self._check_dive(fetch, host)
        elif rules.expected is not None:
            self.unexpected.append(fetch)

    def _check_dive(self, fetch: BadFetch, host: str) -> None:
        name = host if self._rules.pld_of is None else self._rules.pld_of(host)
        self._endless[name] += 1
        bound = self._rules.endless_max
        if bound is not None and self._endless[name] == bound + 1:
            self._first_too_many[name] = fetch

    def _record_repeat(self, exchange: Exchange, before: _FetchState) -> None:
        key = exchange.host, exchange.target
        if not before.is_failed:
            times = self._refetched[key].times if key in self._refetched else 1
            self._refetched[key] = Refetch(self._bad_fetch(exchange).url, times + 1, exchange.start_ms)
        elif before.retries >= self._rules.retries:
            url = self._bad_fetch(exchange).url
            self._over_retried[key] = OverRetry(url, before.retries + 1, self._rules.retries, exchange.start_ms)

    def _bad_fetch(self, exchange: Exchange) -> BadFetch:
        return BadFetch(origin_of(exchange.host, self._rules.port) + exchange.target, exchange.start_ms)

    def _compare_expected(self) -> Iterator[tuple[str, int | Expected, _FetchState]]:
        port = self._rules.port
        for url, wanted in (self._rules.expected or {}).items():
            authority, slash, rest = url.removeprefix("http://").partition("/")
            host, target = authority.partition(":")[0], slash + rest
            urls = self._urls.get(host) if origin_of(host, port) + target == url else None
            yield url, wanted, _UNTRIED if urls is None else urls.get(target, _UNTRIED)


def _expected_statuses(wanted: int | Expected) -> frozenset[int]:
    return frozenset((wanted,)) if isinstance(wanted, int) else wanted.statuses


def _is_covered(fetched: _FetchState, wanted: int | Expected) -> bool:
    """Return whether there was an answer, or a fault that is not the client's."""
    if fetched.status or fetched.is_faulty:
        return True
    return fetched is not _UNTRIED and ABORTED_STATUS in _expected_statuses(wanted)
