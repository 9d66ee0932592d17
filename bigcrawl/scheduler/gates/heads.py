"""Sends a HEAD before a page's GET, if rules for pages may drop it by its head (BIGCRAWL_HEAD_FIRST)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.scheduler.gates.interfaces import Closed, asked_rest_ms
from bigcrawl.scheduler.records.body import look_at_request
from bigcrawl.scheduler.records.held import HeldUrl, Stage
from bigcrawl.scheduler.records.queued_url import ASKED

if TYPE_CHECKING:
    from bigcrawl.scheduler.gates.interfaces import Fetch, NotesFetches
    from bigcrawl.scheduler.gates.starts import FetchStarts
    from bigcrawl.scheduler.rules.page_rules import HeadRules


class HeadFirst:
    def __init__(
        self, rules: HeadRules, starts: FetchStarts, fetch: Fetch, gaps: NotesFetches, retry_after_max_ms: int
    ) -> None:
        self._rules = rules
        self._starts = starts
        self._fetch = fetch
        self._gaps = gaps
        self._clock = starts.clock
        self._retry_after_max_ms = retry_after_max_ms

    def is_due(self, held: HeldUrl) -> bool:
        if not self._rules or held.fields.flags & ASKED or not self._rules.needs_head(held.url):
            return False
        try:
            request = look_at_request(held.fields.body)
        except ValueError:
            return False
        return request.method == "GET" and not request.body

    async def send_head(self, held: HeldUrl) -> str:
        """Send a HEAD for a held URL. Return the rule that drops the URL; empty if it may be fetched."""
        gaps = await self._starts.wait_for_start(held.host, held.due_ms, held.url)
        if held.stage is Stage.ENDED:
            raise Closed(retry_ms=0)  # another node has its host by now
        with self._gaps.fetching_from(held.host):
            fetched = await self._fetch(held.url, "HEAD", gaps, held.fields.body)
        held.record_answer(asked_rest_ms(fetched, self._clock.now_ms(), self._retry_after_max_ms))
        return self._rules.dropping_rule(fetched.status, fetched.content_type, fetched.content_length)
