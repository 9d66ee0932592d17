"""Delays of hosts and servers that shrink as budgets grow, down to floors, by default unset.

Otherwise URLs of hosts with large budgets would enter memory faster than they leave. Delays from robots.txt and those
set by hand are never scaled. Source: IRLbot §6.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.bounded import BoundedDict
from bigcrawl.politeness.backoff_policy import scaled_delay_ms
from bigcrawl.scheduler.rules.delay_rules import DelayBook

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bigcrawl.config import Config

HOSTS_KEPT = 100_000
"""About 10 MB. A host beyond these rests for the whole delay."""

SERVERS_KEPT = 10_000
PLDS_OF_A_SERVER = 64  # the last ones met give a good enough mean


class HostDelays:
    def __init__(self, config: Config, pld_of: Callable[[str], str] = str) -> None:
        self._pld_of = pld_of
        self._policy = config.politeness
        self._base = config.budget.base
        self._budgets: BoundedDict[str, int] = BoundedDict(HOSTS_KEPT)
        self._met: BoundedDict[str, BoundedDict[str, int]] = BoundedDict(SERVERS_KEPT)
        self.delays = DelayBook({}, str)
        self.are_scaled = (
            self._policy.host_delay_min_ms < self._policy.host_delay_ms
            or self._policy.server_delay_min_ms < self._policy.server_delay_ms
        )
        self.servers_have_gaps = self._policy.server_delay_ms > 0

    @property
    def differ(self) -> bool:
        return self.are_scaled or len(self.delays) > 0

    def set_by_hand(self, delays: DelayBook) -> None:
        self.delays = delays

    def record_budgets(self, budgets: Mapping[str, int]) -> None:
        for host, budget in budgets.items():
            self._budgets.remember(host, budget)

    def host_delay_ms(self, host: str) -> int:
        """Return the shortest rest of a host; robots.txt may ask for more."""
        policy = self._policy
        if len(self.delays) and (by_hand_ms := self.delays.of_host(host).delay_ms) is not None:
            return by_hand_ms
        return scaled_delay_ms(
            policy.host_delay_ms, policy.host_delay_min_ms, self._budgets.get(host, self._base), self._base
        )

    def server_delay_ms(self, address: str, host: str) -> int:
        policy = self._policy
        if policy.server_delay_min_ms >= policy.server_delay_ms:
            return policy.server_delay_ms
        met = self._met.get(address)
        if met is None:
            met = BoundedDict(PLDS_OF_A_SERVER)
        self._met.remember(address, met)
        met.remember(self._pld_of(host), self._budgets.get(host, self._base))
        mean = sum(met.values()) / len(met)
        return scaled_delay_ms(policy.server_delay_ms, policy.server_delay_min_ms, mean, self._base)
