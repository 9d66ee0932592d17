"""Plans the next visits to this node's URLs (steps 11 to 14 of a URL's life).

A URL visited before that now ends without an answer is visited again: its host may only be closed. A URL that was never
a page, or may kill nodes, is not.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.features.revisits.limits import REVISIT
from bigcrawl.features.revisits.settings import RevisitConfig
from bigcrawl.listings.changefreqs import PERIODS_S
from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds
from bigcrawl.revisiting.visit import NO_ANSWER, Visit, VisitFormatError, next_visit
from bigcrawl.scheduler.handout.observers import Observer
from bigcrawl.scheduler.records.body import known_in, look_at_link, with_known
from bigcrawl.scheduler.records.member import clamp_priority
from bigcrawl.scheduler.records.queued_url import ASKED, UNCHECKED, QueuedUrl, listed_in
from bigcrawl.scheduler.records.timed_url import NO_MORE_S, TimedUrl

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bigcrawl.revisiting.visit import Answer
    from bigcrawl.scheduler.handout.observers import NodeSide
    from bigcrawl.scheduler.records.held import HeldUrl

logger = logging.getLogger(__name__)

LISTED_PRIORITY_MAX: Final = 9
"""A page in a sitemap or feed is important only above this priority: up to it, its own site may have raised it."""

_LATE_VISITS: Final = 20

LAST_ENDS: Final = frozenset({"poison", "undecodable", "elsewhere", "scheme"})
"""Reasons for giving a URL up that also hold at the next visit."""


def observer_of(side: NodeSide) -> NextVisits:
    config = side.config.feature_config(RevisitConfig)
    policy = RevisitPolicy(config.rule, WaitBounds(config.usual_s, config.shortest_s, config.longest_s))
    return NextVisits(policy, config.visits_max, side.client.now_ms, partial(_ruled_s, side))


class VisitedPage(NamedTuple):
    before: Visit | None
    after: Visit | None

    @property
    def is_unchanged(self) -> bool:
        if self.before is None or self.after is None:
            return False
        is_known = self.after.last_s != self.before.last_s
        return is_known and self.after.changed_s == self.before.changed_s and not self.after.is_gone


class NextVisits(Observer):
    """Plans the next visits to URLs: at most `visits_max` to each, or any number if that is 0."""

    def __init__(
        self,
        policy: RevisitPolicy,
        visits_max: int,
        now_ms: Callable[[], int],
        ruled_s: Callable[[HeldUrl], int | None] = lambda held: None,
    ) -> None:
        """`ruled_s` returns the wait that a rule sets for a URL, 0 for no further visit, or None."""
        self._ruled_s = ruled_s
        self._policy = policy
        self._visits_max = visits_max
        self._now_ms = now_ms
        self.late_s = 0.0
        """How many seconds after their due time recent visits took place, on average; the last twenty count most."""

    def known_of(self, held: HeldUrl) -> Visit | None:
        data = known_in(held.fields.body) if held.url else b""
        if not data:
            return None
        try:
            return Visit.unpack(data)
        except VisitFormatError as error:
            logger.warning(
                "%(url)s has no usable record of earlier visits, so this counts as the first: %(error)s",
                {"url": held.url, "error": error},
            )
            return None

    def was_fetched(self, held: HeldUrl) -> bool:
        return self.known_of(held) is not None

    def record_visit(self, held: HeldUrl, answer: Answer) -> VisitedPage:
        before = self.known_of(held)
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
        ruled_s = self._ruled_s(held)
        if after is not None and ruled_s:
            due_s = now_s + ruled_s
            after = after._replace(due_s=due_s, soonest_s=min(after.soonest_s, due_s))
        has_more = after is not None and not 0 < self._visits_max <= after.number and ruled_s != 0
        due_s = after.due_s if after is not None and has_more else NO_MORE_S
        held.record_retry(_planned_revisit(held, after, due_s) if after is not None else None)
        return VisitedPage(before, after)

    def before_end(self, held: HeldUrl, reason: str) -> None:
        if not held.is_settled and not LAST_ENDS & {reason, held.refusal} and self.was_fetched(held):
            self.record_visit(held, NO_ANSWER)

    def reported(self) -> Mapping[str, Any]:
        return {"visits_late_s": round(self.late_s)}


def _planned_revisit(held: HeldUrl, visit: Visit, due_s: int) -> TimedUrl:
    body = with_known(held.fields.body, visit.pack())
    _, _, priority = look_at_link(body)
    fields = held.fields
    # With the priority from its first link: the current one may have been lowered by failures.
    url = QueuedUrl(fields.key, held.host, clamp_priority(priority), fields.flags & ~(UNCHECKED | ASKED), body)
    return TimedUrl(due_s, visit.number, url)


def _ruled_s(side: NodeSide, held: HeldUrl) -> int | None:
    limit = side.limit_of(REVISIT, held.host, held.url) if REVISIT in side.limited and held.url else None
    return None if limit is None else limit.value
