"""What a node has heard of hosts of late: is it a page that fails, or its host? (step 12): memory only, no clock.

One page may be bad on any host: a 503 of one script, an answer that never ends, a port where nobody listens. Its next
try goes behind the host's other URLs, and nobody waits. Only when `PAGES_MAX` different ones have failed in a row, with
no answer between them, a 500 included, does the next one say that the host fails, and its back-off begins. Nothing is
doubted where the host itself speaks (429, Retry-After, DNS). Nor is a host that has not answered this node yet, or not
since it failed, but for the very first robots.txt: another scheme or port of it may answer. Pages that are broken one
after the other, which is no failure of the host, make it rest longer and longer all the same.
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
REST_FIRST_MS: Final = 1_000  # after one bad page more in a row; twice as long with each further one
REST_LONGEST_MS: Final = 60_000
BROKEN: Final = ("status:5", "error:")  # what outcomes of pages that failed begin with


class BadPages(NamedTuple):
    """Pages of a host that failed since the last good one, and how many of them since its last answer of any kind."""

    pages: frozenset[int | str]
    silent: int


NONE_BAD: Final = BadPages(frozenset(), 0)


class HostHealth:
    """Hosts that answer, and those of them of which a page failed last; hosts that fail."""

    def __init__(self, backoff: BackoffPolicy, dice: Callable[[], float]) -> None:
        """Let hosts back off by a policy, with jitter from `dice`, which is below 1."""
        self._backoff = backoff
        self._dice = dice
        self._answered: BoundedDict[str, None] = BoundedDict(HOSTS_REMEMBERED)  # and have not failed since
        self._bad: BoundedDict[str, BadPages] = BoundedDict(HOSTS_REMEMBERED)
        self._failing: BoundedDict[str, int] = BoundedDict(HOSTS_REMEMBERED)  # host -> key of the URL that failed last

    def __repr__(self) -> str:
        return f"<HostHealth answered={len(self._answered)} bad={len(self._bad)} failing={len(self._failing)}>"

    def fails(self, host: str) -> bool:
        """Whether the host fails, by the last that is known of it."""
        return host in self._failing

    def is_failing(self, host: str, key: int) -> bool:
        """Whether it fails, and the URL of the key is not the one that failed last."""
        return self._failing.get(host, key) != key

    def bad_pages(self, host: str) -> int:
        """How many different pages of the host have failed in a row, `PAGES_REMEMBERED` at most."""
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
        """A page's answer is an error of its server, or broke off: its host answers all the same."""
        bad = self._bad.get(held.host, NONE_BAD)
        self.note_answer(held.host)
        self._note_bad(held.host, bad, held.fields.key, 0)

    def note_failure(self, held: HeldUrl, said: str) -> bool:
        """A page failed, by an outcome of `FAILURES`, or what was `said` instead; whether it is its host that fails."""
        host = held.host
        bad = self._bad.get(host, NONE_BAD)
        page: int | str = held.fields.key if said in FAILURES else held.authority
        is_known = page in bad.pages or (held.fields.attempts > 0 and said in FAILURES)
        if host in self._answered:
            is_in_doubt = is_known or bad.silent < PAGES_MAX
        else:
            is_in_doubt = said not in FAILURES and not bad.silent and host not in self._failing
        if is_in_doubt and said in DOUBTFUL and not held.retry_after_ms:
            self._note_bad(host, bad, page, bad.silent + (not is_known))
            return False
        if host in self._answered:
            del self._answered[host]
            logger.info("%(host)s fails, by %(why)s: its URLs wait for it", {"host": host, "why": said})
        self._bad.pop(host, None)
        self._failing.remember(host, held.fields.key)
        return True

    def rest_ms(self, host: str) -> int:
        """How long a host rests at least for its bad pages; 0 for `PAGES_MAX` of them, which any host may have."""
        if not self._bad:
            return 0
        more = self.bad_pages(host) - PAGES_MAX
        if more <= 0:
            return 0
        return retry_backoff_ms(more, self._dice(), first_ms=REST_FIRST_MS, longest_ms=REST_LONGEST_MS)

    def retire_after(self, failures_max: int) -> None:
        """Let so many failures in a row retire a host from now on, 0: none."""
        if failures_max != self._backoff.failures_max:
            self._backoff = replace(self._backoff, failures_max=failures_max)

    # --- what Redis is told of a host at a URL's end, to be counted there

    def news_of_fetch(self, held: HeldUrl) -> HostNews:
        """What a fetched URL tells of its host; it is remembered here too."""
        outcome = held.outcome
        if outcome in FAILURES:
            return self.news_of(held, outcome)
        if outcome.startswith(BROKEN) and outcome not in NO_WORD:
            self.note_broken(held)
            return answers(held.next_order)
        if outcome.startswith("status:"):
            self.note_answer(held.host)
            return answers(held.next_order)
        return moved(held.next_order)

    def news_of(self, held: HeldUrl, said: str) -> HostNews:
        """The same of what was `said` of the host: `ANSWERS`, or why it failed."""
        if said == ANSWERS:
            self.note_answer(held.host)
            return answers()
        if not self.note_failure(held, said):
            return moved(held.next_order)
        return fails(said, backoff(self._backoff, self._dice(), held.retry_after_ms), held.next_order)

    def _note_bad(self, host: str, bad: BadPages, page: int | str, silent: int) -> None:
        pages = bad.pages | {page} if len(bad.pages) < PAGES_REMEMBERED else bad.pages
        self._bad.remember(host, BadPages(pages, silent))
