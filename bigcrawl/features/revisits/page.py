"""Plans the next visits to this node's URLs, even if one got no answer, as its host may be down for a while."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.features.revisits.limits import REVISIT
from bigcrawl.features.revisits.settings import RevisitConfig
from bigcrawl.given import as_callable, import_object, whole_number
from bigcrawl.listings.changefreqs import PERIODS_S
from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds
from bigcrawl.revisiting.rules import CYCLES, PERIODIC
from bigcrawl.revisiting.visit import NO_ANSWER, Answer, Visit, VisitFormatError, next_visit
from bigcrawl.scheduler.handout.observers import NodeSide, Observer
from bigcrawl.scheduler.records.body import known_in, look_at_link, with_known
from bigcrawl.scheduler.records.member import clamp_priority
from bigcrawl.scheduler.records.queued_url import ASKED, NO_MORE_S, UNCHECKED, QueuedUrl, TimedUrl, listed_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bigcrawl.features.revisits.cycle_end import CycleEnds
    from bigcrawl.features.revisits.cycle_plan import CyclePlan
    from bigcrawl.scheduler.records.held import HeldUrl

logger = logging.getLogger(__name__)

LISTED_PRIORITY_MAX: Final = 9
"""A page in a sitemap or feed is important only above this priority: up to it, its own site may have raised it."""

_LATE_VISITS: Final = 20
_OWN_WAIT: Final = "BIGCRAWL_REVISIT_WAIT"
_WAIT_S_MAX: Final = 315_360_000

LAST_ENDS: Final = frozenset({"poison", "undecodable", "elsewhere", "scheme"})
"""Reasons for giving a URL up that also hold at the next visit."""


def observer_of(side: NodeSide) -> NextVisits:
    config = side.config.feature_config(RevisitConfig)
    rule = PERIODIC if config.rule == CYCLES else config.rule
    policy = RevisitPolicy(rule, WaitBounds(config.usual_s, config.shortest_s, config.longest_s))
    own_wait = _own_wait(config.own_wait) if config.own_wait else None
    visits = NextVisits(policy, config.visits_max, side.client.now_ms, partial(_ruled_s, side), own_wait)
    if config.rule == CYCLES:
        from bigcrawl.features.revisits.cycle_end import CycleEnds
        from bigcrawl.features.revisits.cycle_plan import parse_cycles

        plan = parse_cycles(config.cycles, side.config.pace.time_zone)
        visits.follow(plan, CycleEnds(side, plan, config.cycle_command, side.config.crawl.crawl_dir))
    return visits


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
    """Plans the next visits: at most `visits_max` for each URL; 0 means no limit."""

    def __init__(
        self,
        policy: RevisitPolicy,
        visits_max: int,
        now_ms: Callable[[], int],
        ruled_s: Callable[[HeldUrl], int | None] = lambda held: None,
        own_wait: Callable[[Visit, int], object] | None = None,
    ) -> None:
        """`ruled_s` returns the wait that a rule sets, 0 for no further visit, or None to use `own_wait`."""
        self._own_wait = own_wait
        self._has_failed = False
        self._ruled_s = ruled_s
        self._policy = policy
        self._visits_max = visits_max
        self._now_ms = now_ms
        self.late_s = 0.0
        """How many seconds after their due time recent visits took place, on average; the last twenty count most."""
        self._visits, self._unchanged = 0, 0
        self._plan: CyclePlan | None = None
        self._ends: CycleEnds | None = None

    def follow(self, plan: CyclePlan, ends: CycleEnds) -> None:
        self._plan, self._ends = plan, ends

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
        if after is not None and self._plan is not None:
            after = after._replace(due_s=self._plan.due_s(now_s), soonest_s=0)
        if ruled_s is None and self._own_wait is not None and after is not None:
            ruled_s = self._decided_s(after, now_s)
        if after is not None and self._plan is not None:
            after = after._replace(due_s=self._plan.due_s(now_s, ruled_s or 0))
        elif after is not None and ruled_s:
            due_s = now_s + ruled_s
            after = after._replace(due_s=due_s, soonest_s=min(after.soonest_s, due_s))
        has_more = after is not None and not 0 < self._visits_max <= after.number and ruled_s != 0
        due_s = after.due_s if after is not None and has_more else NO_MORE_S
        held.record_retry(_planned_revisit(held, after, due_s) if after is not None else None)
        page = VisitedPage(before, after)
        if before is not None and after is not None and after.last_s != before.last_s:
            self._visits += 1
            self._unchanged += page.is_unchanged
        return page

    def _decided_s(self, visit: Visit, now_s: int) -> int | None:
        """Return the wait that the user's function chooses; None if it fails, which is logged once."""
        assert self._own_wait is not None
        try:
            wait_s = whole_number(self._own_wait(visit, visit.due_s - now_s))
            if not 0 <= wait_s <= _WAIT_S_MAX:
                raise ValueError(f"is {wait_s}: it must be from 0 to {_WAIT_S_MAX}")  # noqa: TRY301
        except Exception:
            if not self._has_failed:
                self._has_failed = True
                logger.exception("%(setting)s failed; the wait of the policy holds", {"setting": _OWN_WAIT})
            return None
        return wait_s

    def before_end(self, held: HeldUrl, reason: str) -> None:
        if not held.is_settled and not LAST_ENDS & {reason, held.refusal} and self.was_fetched(held):
            self.record_visit(held, NO_ANSWER)

    async def send(self, *, is_last: bool) -> None:
        if self._ends is not None and not is_last:
            await self._ends.send()

    def delay_end(self, ended: int) -> bool:
        return self._ends is not None and self._ends.delay_end(ended)

    async def close(self) -> None:
        if self._ends is not None:
            await self._ends.close()

    def reported(self) -> Mapping[str, Any]:
        found = {"visits_late_s": round(self.late_s), "visits": self._visits, "visits_unchanged": self._unchanged}
        return found if self._visits else {"visits_late_s": found["visits_late_s"]}


def _own_wait(path: str) -> Callable[[Visit, int], object]:
    return as_callable(_OWN_WAIT, path, import_object(_OWN_WAIT, path))


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
