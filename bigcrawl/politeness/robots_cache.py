"""Robots rules of one process that has no frontier: kept, renewed, and held on to while a server errs.

known, young            -> used
2xx, 4xx                -> kept as long as the verdict says
no answer, 5xx, 429     -> the last good copy goes on to hold; without one all is forbidden;
                           asked again with back-off either way
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bigcrawl.politeness.robots_policy import KEPT_MS, decide
from bigcrawl.politeness.throttle_policy import retry_backoff_ms

if TYPE_CHECKING:
    from bigcrawl.politeness.robots_policy import Rules

RULES_KEPT = 20_000
"""Authorities whose rules are kept; 1-2 KB each."""

RULES_CHARS_KEPT = 16 << 20
"""All their lines together: a robots.txt may be 500 KiB, and some are."""


ATTEMPT_FIRST_MS = 10_000
ATTEMPTS_SOON = 2  # a restart is waited for, within a page's usual two retries


@dataclass(frozen=True, slots=True)
class KeptRules:
    """Rules with their end on the caller's clock; `attempts` counts fetches in a row without an answer."""

    rules: Rules
    expires_ms: int
    reason: str
    attempts: int = 0

    @property
    def is_unreachable(self) -> bool:
        """Whether all is forbidden only because no robots.txt could be had."""
        return self.reason == "unreachable"

    @property
    def is_asked_again_soon(self) -> bool:
        """Whether it is out of reach for so short a time yet that waiting is worth it."""
        return 0 < self.attempts <= ATTEMPTS_SOON


class RobotsCache:
    """The rules of at most `entries_max` authorities, `chars_max` together; the one unused for longest goes first."""

    def __init__(
        self,
        agent: str,
        *,
        attempt_first_ms: int = ATTEMPT_FIRST_MS,
        entries_max: int = RULES_KEPT,
        chars_max: int = RULES_CHARS_KEPT,
    ) -> None:
        """Read rules for the product token `agent`; one that is out of reach is asked for after `attempt_first_ms`."""
        self._agent = agent
        self._attempt_first_ms = attempt_first_ms
        self._entries_max = entries_max
        self._chars_max = chars_max
        self._kept: OrderedDict[str, KeptRules] = OrderedDict()
        self._chars = 0

    def __repr__(self) -> str:
        return f"RobotsCache({len(self._kept)} authorities)"

    def __len__(self) -> int:
        return len(self._kept)

    def known(self, authority: str, now_ms: int) -> KeptRules | None:
        """The rules, unless there are none or they must be asked for again."""
        kept = self._kept.get(authority)
        if kept is None or kept.expires_ms <= now_ms:
            return None
        self._kept.move_to_end(authority)
        return kept

    def put(
        self,
        authority: str,
        status: int | None,
        body: bytes,
        now_ms: int,
        jitter: float,
        expires_in_ms: int = KEPT_MS,
    ) -> KeptRules:
        """Keep what the answer to a request for the authority's robots.txt means.

        Args:
            authority: as `authority_of` gives it.
            status: of the last answer; None when none came.
            body: of that answer, decompressed.
            now_ms: now.
            jitter: from 0 to 1, drawn by the caller.
            expires_in_ms: for how long an answer is kept, see `kept_ms`.
        """
        earlier = self._kept.get(authority)
        attempts = (earlier.attempts if earlier else 0) + 1
        verdict = decide(status, body, self._agent, attempts=attempts, jitter=jitter, expires_in_ms=expires_in_ms)
        expires_ms = now_ms + verdict.expires_in_ms
        if verdict.reason != "unreachable":
            return self._keep(authority, KeptRules(verdict.rules, expires_ms, verdict.reason))
        if attempts <= ATTEMPTS_SOON:
            expires_ms = now_ms + retry_backoff_ms(attempts, jitter, first_ms=self._attempt_first_ms)
        if earlier is not None and not earlier.is_unreachable:
            return self._keep(authority, KeptRules(earlier.rules, expires_ms, earlier.reason, attempts))
        return self._keep(authority, KeptRules(verdict.rules, expires_ms, verdict.reason, attempts))

    def _keep(self, authority: str, kept: KeptRules) -> KeptRules:
        earlier = self._kept.pop(authority, None)
        if earlier is not None:
            self._chars -= earlier.rules.chars
        self._kept[authority] = kept
        self._chars += kept.rules.chars
        while len(self._kept) > self._entries_max or (self._chars > self._chars_max and len(self._kept) > 1):
            self._chars -= self._kept.popitem(last=False)[1].rules.chars
        return kept
