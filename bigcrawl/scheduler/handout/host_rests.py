"""How long a host rests after a fetch (step 12): by the settings, its robots.txt, and how the fetch went."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bigcrawl.politeness.backoff_policy import FAILURES
from bigcrawl.politeness.throttle_policy import DelayPolicy, host_delay_ms

if TYPE_CHECKING:
    from bigcrawl.config import PolitenessConfig
    from bigcrawl.scheduler.gates.delays import Paces
    from bigcrawl.scheduler.records.held import HeldUrl

OVERLOADED_PAGE: Final = "status:503"
OVERLOADED_FACTOR: Final = 2  # the host rests twice as long, whether the page or the host is overloaded


class RestsAfterFetches:
    """The rests of hosts, without those for failures and bad pages, which `host_health` has."""

    def __init__(self, policy: PolitenessConfig, paces: Paces) -> None:
        self._policy = DelayPolicy(
            policy.host_delay_ms, policy.crawl_delay_max_ms, policy.download_factor, policy.slow_after_ms
        )
        self._paces = paces

    def __repr__(self) -> str:
        return f"<RestsAfterFetches {self._policy}>"

    def after(self, held: HeldUrl) -> int:
        """How long the host of a fetched URL rests, in ms."""
        policy = self._policy
        if self._paces.differ:
            policy = replace(policy, minimum_ms=self._paces.host_delay_ms(held.host))
        download_ms = 0 if held.outcome in FAILURES else held.download_ms  # a failure has its back-off
        rest_ms = host_delay_ms(
            policy, crawl_delay_ms=held.crawl_delay_ms, download_ms=download_ms, backoff_ms=held.retry_after_ms
        )
        return OVERLOADED_FACTOR * rest_ms if held.outcome == OVERLOADED_PAGE and not held.retry_after_ms else rest_ms
