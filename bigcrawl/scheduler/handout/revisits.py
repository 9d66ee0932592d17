"""Which URLs of this node are visited again when they end, and when (steps 11 to 14).

A downloader middleware says what a visit brought (`note_answer`). A URL that was visited before and ends without an
answer is visited again all the same (`note_end`): a closed host or a new rule in robots.txt does not end its visits. A
URL that was never a page, or may kill nodes, is not visited again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.revisiting.hints import PERIODS_S
from bigcrawl.revisiting.policies import NEVER, RevisitPolicy, WaitBounds
from bigcrawl.revisiting.visit import NO_ANSWER, Visit, VisitFormatError, next_visit
from bigcrawl.scheduler.records.body import for_revisit, look_at_link, visit_in
from bigcrawl.scheduler.records.member import clamped
from bigcrawl.scheduler.records.queued_url import ASKED, UNCHECKED, QueuedUrl, listed_in
from bigcrawl.scheduler.records.revisits import Revisit

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.config import RevisitConfig
    from bigcrawl.revisiting.visit import Answer
    from bigcrawl.scheduler.records.held import HeldUrl

logger = logging.getLogger(__name__)

LISTED_PRIORITY_MAX: Final = 9
"""A page that its site lists is important only above this: up to it, the site's own word may have raised it."""

_LATE_VISITS: Final = 20

LAST_ENDS: Final = frozenset({"poison", "undecodable", "elsewhere", "scheme"})
"""Reasons for giving a URL up that are as good the next time."""


class Visited(NamedTuple):
    """What was known of a page before a visit, and after it; None if it was not visited, or will not be."""

    before: Visit | None
    after: Visit | None

    @property
    def is_unchanged(self) -> bool:
        """Whether the page is known to be as it was at the visit before."""
        if self.before is None or self.after is None:
            return False
        is_known = self.after.last_s != self.before.last_s
        return is_known and self.after.changed_s == self.before.changed_s and not self.after.is_gone


class Revisits:
    """Plans the next visits of URLs.

    Args:
        policy: decides when; None if no URL is visited again.
        visits_max: how often a page is visited in all; 0 for no limit.
        now_ms: the time of the crawls.
    """

    def __init__(self, policy: RevisitPolicy | None, visits_max: int, now_ms: Callable[[], int]) -> None:
        self._policy = policy
        self._visits_max = visits_max
        self._now_ms = now_ms
        self.late_s = 0.0
        """How long after their time visits come, of late: a mean in which the last twenty count most."""

    def __repr__(self) -> str:
        return f"<Revisits {self._policy!r}>"

    def known_of(self, held: HeldUrl) -> Visit | None:
        """Return what is known of a URL's page; None if it was not visited before, or that cannot be read."""
        if self._policy is None or not held.url:
            return None
        data = visit_in(held.fields.body)
        if not data:
            return None
        try:
            return Visit.unpack(data)
        except VisitFormatError as error:
            logger.warning("%(url)s is visited as for the first time: %(error)s", {"url": held.url, "error": error})
            return None

    def note_answer(self, held: HeldUrl, answer: Answer) -> Visited:
        """Plan the URL's next visit by what this one brought."""
        before = self.known_of(held)
        if self._policy is None:
            return Visited(None, None)
        now_s = self._now_ms() // 1000
        if before is not None:
            self.late_s += (max(0, now_s - before.due_s) - self.late_s) / _LATE_VISITS
        listed = listed_in(held.fields.flags)
        after = next_visit(
            before,
            answer,
            now_s,
            self._policy,
            is_important=held.fields.priority > (LISTED_PRIORITY_MAX if listed else 0),
            hinted_s=PERIODS_S[listed],
        )
        has_more = after is not None and not 0 < self._visits_max <= after.number
        held.note_revisit(_revisit(held, after) if after is not None and has_more else None)
        return Visited(before, after)

    def note_end(self, held: HeldUrl, reason: str = "") -> None:
        """The URL ends, perhaps unfetched for a reason. Visit its page again if it was visited before."""
        if self._policy is None or held.is_visited or LAST_ENDS & {reason, held.refusal}:
            return
        if self.known_of(held) is not None:
            self.note_answer(held, NO_ANSWER)


def policy_of(config: RevisitConfig) -> RevisitPolicy | None:
    """Return the policy that the settings ask for; None if pages are not visited again."""
    if config.rule == NEVER:
        return None
    return RevisitPolicy(config.rule, WaitBounds(config.usual_s, config.shortest_s, config.longest_s))


def _revisit(held: HeldUrl, visit: Visit) -> Revisit:
    body = for_revisit(held.fields.body, visit.pack())
    _, _, priority = look_at_link(body)
    fields = held.fields
    # With its first priority, which failures lower.
    url = QueuedUrl(fields.key, held.host, clamped(priority), fields.flags & ~(UNCHECKED | ASKED), body)
    return Revisit(visit.due_s, visit.number, url)
