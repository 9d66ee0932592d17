"""Does a page fail, or its host? (step 12): what this node has seen of hosts lately; memory only, no clock.

Any host may have a bad page: a 503 from one script, an answer that never ends, a port where nobody listens. The next
try of such a page goes behind the host's other URLs, and none of them waits. When `PAGES_MAX` different pages have
failed in a row, with no answer between them (a 500 is one), the next failure means that the host fails, and its
back-off begins. There is no doubt if the host itself says so (429, Retry-After, DNS), or if it has not answered this
node yet, or not since it failed. An exception is the very first robots.txt: another scheme or port may answer. Broken
pages one after the other are no failure of the host, but they make it rest longer and longer.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.bounded import BoundedDict
from bigcrawl.politeness.backoff_policy import DOUBTFUL, FAILURES, NO_WORD, backoff
from bigcrawl.politeness.throttle_policy import retry_backoff_ms
from bigcrawl.redisdb.scripts import ANSWERS, answers, fails, moved

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.politeness.backoff_policy import BackoffPolicy
    from bigcrawl.redisdb.scripts import HostNews
    from bigcrawl.scheduler.records.held import HeldUrl

logger = logging.getLogger(__name__)

HOSTS_REMEMBERED: Final = 100_000  # of each kind; some 10 MB each
PAGES_MAX: Final = 3
PAGES_REMEMBERED: Final = 10  # of a host, bad ones in a row
REST_FIRST_MS: Final = 1_000  # after one bad page more in a row; doubled with each further one
REST_LONGEST_MS: Final = 60_000
BROKEN: Final = ("status:5", "error:")  # how the outcomes of failed pages begin


class BadPages(NamedTuple):
    """Pages of a host that failed since its last good one, and how many of them since its last answer of any kind."""

    pages: frozenset[int | str]
    silent: int


NONE_BAD: Final = BadPages(frozenset(), 0)


class HostHealth:
    """Which hosts answer, which of those have bad pages, and which fail."""

    def __init__(self, backoff: BackoffPolicy, dice: Callable[[], float]) -> None:
        """Let hosts back off by a policy. `dice` returns jitter from 0 to below 1."""
        self._backoff = backoff
        self._dice = dice
        self._answered: BoundedDict[str, None] = BoundedDict(HOSTS_REMEMBERED)  # hosts that have not failed since
        self._bad: BoundedDict[str, BadPages] = BoundedDict(HOSTS_REMEMBERED)
        self.failures = 0  # failures of hosts, not of their pages; each makes its host rest
        self._failing: BoundedDict[str, tuple[int, int]] = BoundedDict(HOSTS_REMEMBERED)
        """By host: the key of the URL that failed last, and when its fetch was over."""

    def __repr__(self) -> str:
        return f"<HostHealth answered={len(self._answered)} bad={len(self._bad)} failing={len(self._failing)}>"

    @property
    def failing(self) -> int:
        """How many hosts failed when this node last asked them, `HOSTS_REMEMBERED` at most."""
        return len(self._failing)

    def fails(self, host: str) -> bool:
        """Whether the host failed when it was last asked."""
        return host in self._failing

    def is_failing(self, host: str, key: int) -> bool:
        """Whether the host fails, and another URL than that of the key was the last to fail."""
        return host in self._failing and self._failing[host][0] != key

    def bad_pages(self, host: str) -> int:
        """How many different pages of the host have failed in a row, at most `PAGES_REMEMBERED`."""
        return len(self._bad.get(host, NONE_BAD).pages) if self._bad else 0

    def note_answer(self, host: str) -> None:
        """A page was fetched, or robots.txt answered. Cost: 0.1 us."""
        if host not in self._answered:
            self._answered.remember(host, None)
        if self._bad:
            self._bad.pop(host, None)
        if self._failing:
            self._failing.pop(host, None)

    def note_broken(self, held: HeldUrl) -> None:
        """A page's answer is a server error, or broke off. The host answers all the same."""
        bad = self._bad.get(held.host, NONE_BAD)
        self.note_answer(held.host)
        self._note_bad(held.host, bad, held.fields.key, 0)

    def note_failure(self, held: HeldUrl, outcome: str) -> bool:
        """A page failed with an outcome of `FAILURES`, or its host in another way. Return whether the host fails."""
        host = held.host
        bad = self._bad.get(host, NONE_BAD)
        page: int | str = held.fields.key if outcome in FAILURES else held.authority
        is_known = page in bad.pages or (held.fields.attempts > 0 and outcome in FAILURES)
        if host in self._answered:
            is_in_doubt = is_known or bad.silent < PAGES_MAX
        else:
            is_in_doubt = outcome not in FAILURES and not bad.silent and host not in self._failing
        if is_in_doubt and outcome in DOUBTFUL and not held.retry_after_ms:
            self._note_bad(host, bad, page, bad.silent + (not is_known))
            return False
        if host in self._answered:
            del self._answered[host]
            logger.info("%(host)s fails, by %(why)s: its URLs wait for it", {"host": host, "why": outcome})
        self._bad.pop(host, None)
        self._failing.remember(host, (held.fields.key, held.answered_ms))
        self.failures += 1
        return True

    def rest_ms(self, host: str) -> int:
        """The shortest rest of a host because of its bad pages; 0 for up to `PAGES_MAX`, which any host may have."""
        if not self._bad:
            return 0
        more = self.bad_pages(host) - PAGES_MAX
        if more <= 0:
            return 0
        return retry_backoff_ms(more, self._dice(), first_ms=REST_FIRST_MS, longest_ms=REST_LONGEST_MS)

    def retire_after(self, failures_max: int) -> None:
        """From now on, retire a host after this number of failures in a row; 0: never."""
        if failures_max != self._backoff.failures_max:
            self._backoff = replace(self._backoff, failures_max=failures_max)

    # --- what a URL's end tells Redis about its host

    def news_of_fetch(self, held: HeldUrl) -> HostNews:
        """What a fetched URL says about its host; it is noted here too."""
        outcome = held.outcome
        if outcome in FAILURES:
            return self.news_of(held, outcome)
        if self._failing and held.answered_ms < self._failing.get(held.host, (0, 0))[1]:
            return moved(held.next_order)  # its host has failed since, while the page was parsed
        if outcome.startswith(BROKEN) and outcome not in NO_WORD:
            self.note_broken(held)
            return answers(held.next_order)
        if outcome.startswith("status:"):
            self.note_answer(held.host)
            return answers(held.next_order)
        return moved(held.next_order)

    def news_of(self, held: HeldUrl, report: str) -> HostNews:
        """The same for a report on the host: `ANSWERS`, or why it failed."""
        if report == ANSWERS:
            self.note_answer(held.host)
            return answers()
        if not self.note_failure(held, report):
            return moved(held.next_order)
        return fails(report, backoff(self._backoff, self._dice(), held.retry_after_ms), held.next_order)

    def _note_bad(self, host: str, bad: BadPages, page: int | str, silent: int) -> None:
        pages = bad.pages | {page} if len(bad.pages) < PAGES_REMEMBERED else bad.pages
        self._bad.remember(host, BadPages(pages, silent))
