"""The robots rules of a process without a frontier: cached, renewed, and kept while a server fails.

known, not expired      -> used
2xx, 4xx                -> kept as long as the verdict says
no answer, 5xx, 429     -> the last good copy stays in force; without one, everything is forbidden;
                           asked again with back-off in both cases
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from bigcrawl.politeness.backoff_policy import retry_backoff_ms
from bigcrawl.politeness.robots_policy import KEPT_MS, RobotsRules, verdict_on_response

RULES_KEPT = 20_000
RULES_CHARS_KEPT = 16 << 20
"""Limit on all kept rules: some robots.txt files have 500 KiB."""


ATTEMPT_FIRST_MS = 10_000
ATTEMPTS_SOON = 2  # so many early attempts wait for a server's restart, within the usual two retries of a page


@dataclass(frozen=True, slots=True)
class KeptRules:
    """Rules and their expiry on the caller's clock. `attempts` counts consecutive fetches without an answer."""

    rules: RobotsRules
    expires_ms: int
    reason: str
    attempts: int = 0

    @property
    def is_unreachable(self) -> bool:
        """Whether everything is forbidden only because robots.txt is unreachable."""
        return self.reason == "unreachable"

    @property
    def is_asked_again_soon(self) -> bool:
        """Whether robots.txt has been unreachable so briefly that waiting for it is worthwhile."""
        return 0 < self.attempts <= ATTEMPTS_SOON


class RobotsCache:
    """Keeps the rules of at most `entries_max` authorities, `chars_max` in all; drops the least recently used first."""

    def __init__(
        self,
        agent: str,
        *,
        attempt_first_ms: int = ATTEMPT_FIRST_MS,
        entries_max: int = RULES_KEPT,
        chars_max: int = RULES_CHARS_KEPT,
    ) -> None:
        """Read rules for the product token `agent`. An unreachable robots.txt is retried after `attempt_first_ms`."""
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

    def known_rules(self, authority: str, now_ms: int) -> KeptRules | None:
        kept = self._kept.get(authority)
        if kept is None or kept.expires_ms <= now_ms:
            return None
        self._kept.move_to_end(authority)
        return kept

    def store_response(
        self, authority: str, status: int | None, body: bytes, now_ms: int, jitter: float, expires_in_ms: int = KEPT_MS
    ) -> KeptRules:
        """Store the rules from a response for an authority's robots.txt. `status` is None if there was none."""
        earlier = self._kept.get(authority)
        attempts = (earlier.attempts if earlier else 0) + 1
        verdict = verdict_on_response(
            status, body, self._agent, attempts=attempts, jitter=jitter, expires_in_ms=expires_in_ms
        )
        expires_ms = now_ms + verdict.expires_in_ms
        if verdict.reason != "unreachable":
            return self._store_rules(authority, KeptRules(verdict.rules, expires_ms, verdict.reason))
        if attempts <= ATTEMPTS_SOON:
            expires_ms = now_ms + retry_backoff_ms(attempts, jitter, first_ms=self._attempt_first_ms)
        if earlier is not None and not earlier.is_unreachable:
            return self._store_rules(authority, KeptRules(earlier.rules, expires_ms, earlier.reason, attempts))
        return self._store_rules(authority, KeptRules(verdict.rules, expires_ms, verdict.reason, attempts))

    def _store_rules(self, authority: str, kept: KeptRules) -> KeptRules:
        earlier = self._kept.pop(authority, None)
        if earlier is not None:
            self._chars -= earlier.rules.chars
        self._kept[authority] = kept
        self._chars += kept.rules.chars
        while len(self._kept) > self._entries_max or (self._chars > self._chars_max and len(self._kept) > 1):
            self._chars -= self._kept.popitem(last=False)[1].rules.chars
        return kept
