"""Decides whether a page has failed, or its host; memory only, no clock.

A bad page's next try goes behind the host's other URLs. The host fails at the next failure after `PAGES_MAX` different
pages have failed in a row without an answer (a 500 is one). It fails at once if it says so itself (429, Retry-After,
DNS), or has not answered this node yet or since its last failure. The very first robots.txt is an exception, because
another scheme or port may answer. Broken pages in a row only lengthen a host's rests.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.bounded import BoundedDict
from bigcrawl.politeness.backoff_policy import (
    DOUBTFUL,
    FAILURES,
    NO_WORD,
    BackoffPolicy,
    backoff_of_failure,
    retry_backoff_ms,
)
from bigcrawl.redisdb.scripts import ANSWERS, HostEffect, effect_of_answer, effect_of_failure, effect_of_move

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.scheduler.records.held import HeldUrl

logger = logging.getLogger(__name__)

HOSTS_REMEMBERED: Final = 100_000
PAGES_MAX: Final = 3
PAGES_REMEMBERED: Final = 10
REST_FIRST_MS: Final = 1_000  # doubled with each further bad page
REST_LONGEST_MS: Final = 60_000
BROKEN: Final = ("status:5", "error:")


class BadPages(NamedTuple):
    pages: frozenset[int | str]
    silent: int


NONE_BAD: Final = BadPages(frozenset(), 0)


class HostHealth:
    def __init__(self, backoff: BackoffPolicy, dice: Callable[[], float]) -> None:
        self._backoff = backoff
        self._dice = dice
        self._answered: BoundedDict[str, None] = BoundedDict(HOSTS_REMEMBERED)
        self._bad: BoundedDict[str, BadPages] = BoundedDict(HOSTS_REMEMBERED)
        self.failures = 0
        self._failing: BoundedDict[str, tuple[int, int]] = BoundedDict(HOSTS_REMEMBERED)

    @property
    def failing_count(self) -> int:
        return len(self._failing)

    def fails(self, host: str) -> bool:
        return host in self._failing

    def is_failing(self, host: str, key: int) -> bool:
        """Return whether the host is failing, and the last failure was that of a URL with another key."""
        return host in self._failing and self._failing[host][0] != key

    def bad_pages(self, host: str) -> int:
        """Return how many bad pages in a row the host had, at most `PAGES_REMEMBERED`."""
        return len(self._bad.get(host, NONE_BAD).pages) if self._bad else 0

    def record_answer(self, host: str) -> None:
        if host not in self._answered:
            self._answered.remember(host, None)
        if self._bad:
            self._bad.pop(host, None)
        if self._failing:
            self._failing.pop(host, None)

    def record_broken(self, held: HeldUrl) -> None:
        """Record a server error or a broken answer. The host still counts as answering."""
        bad = self._bad.get(held.host, NONE_BAD)
        self.record_answer(held.host)
        self._record_bad(held.host, bad, held.fields.key, 0)

    def record_failure(self, held: HeldUrl, outcome: str) -> bool:
        """Record a failure of a page or its host. Return whether the host fails."""
        host = held.host
        bad = self._bad.get(host, NONE_BAD)
        page: int | str = held.fields.key if outcome in FAILURES else held.authority
        is_known = page in bad.pages or (held.fields.attempts > 0 and outcome in FAILURES)
        if host in self._answered:
            is_in_doubt = is_known or bad.silent < PAGES_MAX
        else:
            is_in_doubt = outcome not in FAILURES and not bad.silent and host not in self._failing
        if is_in_doubt and outcome in DOUBTFUL and not held.retry_after_ms:
            self._record_bad(host, bad, page, bad.silent + (not is_known))
            return False
        if host in self._answered:
            del self._answered[host]
            logger.info("%(host)s is failing (%(why)s): its URLs wait until it answers", {"host": host, "why": outcome})
        self._bad.pop(host, None)
        self._failing.remember(host, (held.fields.key, held.answered_ms))
        self.failures += 1
        return True

    def rest_ms(self, host: str) -> int:
        """Return the least rest of a host after bad pages; 0 for up to `PAGES_MAX` of them."""
        if not self._bad:
            return 0
        more = self.bad_pages(host) - PAGES_MAX
        if more <= 0:
            return 0
        return retry_backoff_ms(more, self._dice(), first_ms=REST_FIRST_MS, longest_ms=REST_LONGEST_MS)

    def retire_after(self, failures_max: int) -> None:
        """Retire hosts after this number of failures in a row; 0: never."""
        if failures_max != self._backoff.failures_max:
            self._backoff = replace(self._backoff, failures_max=failures_max)

    def effect_of_fetch(self, held: HeldUrl) -> HostEffect:
        """Record a fetched URL's outcome, and return its effect on the host, for Redis."""
        outcome = held.outcome
        if outcome in FAILURES:
            return self.effect_of(held, outcome)
        if self._failing and held.answered_ms < self._failing.get(held.host, (0, 0))[1]:
            return effect_of_move(held.next_order)  # its host failed while the page was parsed
        if outcome.startswith(BROKEN) and outcome not in NO_WORD:
            self.record_broken(held)
            return effect_of_answer(held.next_order)
        if outcome.startswith("status:"):
            self.record_answer(held.host)
            return effect_of_answer(held.next_order)
        return effect_of_move(held.next_order)

    def effect_of(self, held: HeldUrl, report: str) -> HostEffect:
        if report == ANSWERS:
            self.record_answer(held.host)
            return effect_of_answer()
        if not self.record_failure(held, report):
            return effect_of_move(held.next_order)
        return effect_of_failure(
            report, backoff_of_failure(self._backoff, self._dice(), held.retry_after_ms), held.next_order
        )

    def _record_bad(self, host: str, bad: BadPages, page: int | str, silent: int) -> None:
        pages = bad.pages | {page} if len(bad.pages) < PAGES_REMEMBERED else bad.pages
        self._bad.remember(host, BadPages(pages, silent))
