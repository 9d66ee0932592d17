"""How long a host rests after a fetch: by the settings, its robots.txt, and how the fetch went."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bigcrawl.bounded import BoundedDict
from bigcrawl.politeness.backoff_policy import FAILURES, DelayPolicy, host_delay_ms

if TYPE_CHECKING:
    from bigcrawl.config import PolitenessConfig
    from bigcrawl.scheduler.gates.delays import HostDelays
    from bigcrawl.scheduler.records.held import HeldUrl

OVERLOADED_PAGE: Final = "status:503"
HOSTS_KEPT: Final = 100_000  # some 10 MB if all have connections with pages left; a forgotten host starts over
OVERLOADED_FACTOR: Final = 2  # the host rests twice as long, whether the page or the host is overloaded


class RestsAfterFetches:
    """The rests of hosts, without those for failures and bad pages, which `host_health` decides."""

    def __init__(self, policy: PolitenessConfig, paces: HostDelays) -> None:
        self._policy = DelayPolicy(
            policy.host_delay_ms, policy.crawl_delay_max_ms, policy.download_factor, policy.slow_after_ms
        )
        self._paces = paces
        self._pages_max = policy.connection_pages
        self._pages: BoundedDict[str, int] = BoundedDict(HOSTS_KEPT)
        self._is_between_starts = policy.host_connections > 1

    def of_fetch(self, held: HeldUrl) -> int:
        """Return how long the host of a URL rests after its fetch; called once a fetch. Source: Nexplorer §2.3."""
        rest_ms = self.rest_after_ms(held)
        if self._pages_max == 1:
            return rest_ms
        pages = self._pages.pop(held.host, 0) + 1
        went_well = held.outcome.startswith("status:") and held.outcome not in FAILURES and not held.retry_after_ms
        is_plain = not held.crawl_delay_ms and rest_ms <= self._paces.host_delay_ms(held.host)
        if pages >= self._pages_max or not (held.is_kept and went_well and is_plain):
            return rest_ms
        self._pages.remember(held.host, pages)
        return 0

    def rest_after_ms(self, held: HeldUrl) -> int:
        """Return the host's rest from now, in ms; with several connections, the delay counts from the start."""
        policy = self._policy
        if self._paces.differ:
            policy = replace(policy, minimum_ms=self._paces.host_delay_ms(held.host))
        download_ms = 0 if held.outcome in FAILURES else held.download_ms  # a failure has its back-off
        rest_ms = host_delay_ms(
            policy, crawl_delay_ms=held.crawl_delay_ms, download_ms=download_ms, backoff_ms=held.retry_after_ms
        )
        if self._is_between_starts and rest_ms == host_delay_ms(
            policy, crawl_delay_ms=held.crawl_delay_ms, download_ms=0
        ):
            rest_ms = max(0, rest_ms - download_ms)
        return OVERLOADED_FACTOR * rest_ms if held.outcome == OVERLOADED_PAGE and not held.retry_after_ms else rest_ms
