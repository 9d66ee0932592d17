"""Finds the address of a host and checks it: closed ranges are refused, and public ones without a contact.

Look-ups are shared among PLDs by their budgets, which are read only beyond what each PLD has. Source: IRLbot §1.2 b.
A proxy resolves host names by a setting, or those for which both schemes use one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.request import getproxies, proxy_bypass

from bigcrawl.bounded import BoundedDict
from bigcrawl.clock import Clock, Patience
from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.politeness import addresses
from bigcrawl.politeness.addresses import AddressGuard
from bigcrawl.politeness.dns_cache import DnsCache, DnsError, literal_address
from bigcrawl.politeness.lookup_pace import LookupPace
from bigcrawl.scheduler.budgets.policy import NO_POLICY
from bigcrawl.scheduler.gates.interfaces import WAIT_MS_MAX, Closed, SetsAside

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bigcrawl.config import Config, DnsConfig, PolitenessConfig

FAILED_LOOKUPS_KEPT = 10_000
LOOKUP_RETRY_MS = 2_000  # while a name is being looked up
LOOKUPS_UNDER_WAY_MAX = 5_000
LOOKUP_WAIT_MS_MAX = 600_000
NO_SUCH_NAME = frozenset({"not-found", "malformed-name"})  # DNS has answered, so nothing has failed
UNIDENTIFIED_MS = 10_000  # the crawl ends meanwhile, and the URL waits for the next run
UNIDENTIFIED = (
    "public addresses are not crawled namelessly: set BIGCRAWL_CONTACT, or USER_AGENT, to a web page or a mail address "
    "of yours, so that the owners of crawled sites can reach you. No request was sent to a public address"
)


class LookupLimits:
    def __init__(
        self,
        config: Config,
        clock: Clock,
        pld_of: Callable[[str], str],
        budget_of: Callable[[str], Awaitable[int]],
        record_look_up: Callable[[str], None] | None = None,
    ) -> None:
        names = 0 if config.budget.policy == NO_POLICY else config.dns.pld_names
        self._pace = LookupPace(names) if names else None
        self._base = max(1, config.budget.base)
        self._clock = clock
        self._pld_of = pld_of
        self._budget_of = budget_of
        self._record_look_up = record_look_up

    def __repr__(self) -> str:
        return f"<LookupLimits {self._pace!r}>"

    async def take_turn(self, host: str) -> int:
        """Count a look-up and return 0 if the PLD may have one now; else the wait in ms."""
        pld = self._pld_of(host)
        wait_ms = await self._take_turn(pld, host)
        if not wait_ms and self._record_look_up is not None:
            self._record_look_up(pld)
        return wait_ms

    async def _take_turn(self, pld: str, host: str) -> int:
        if self._pace is None:
            return 0
        share = self._pace.free_share(pld, self._clock.monotonic_ms())
        if share is None:
            share = await self._budget_share(host)
        return self._pace.wait_ms(pld, host, share, self._clock.monotonic_ms())

    async def _budget_share(self, host: str) -> float:
        try:
            budget = await self._budget_of(host)
        except BigcrawlError:  # the partition cannot be read now, or another node owns it
            return 1.0
        return max(budget, 1) / self._base


def local_names(config: DnsConfig) -> Callable[[str], bool]:
    if config.is_proxys:
        return _proxies_none
    is_set = config.obeys_environment and {"http", "https"} <= getproxies().keys()
    return _bypasses_proxy if is_set else _proxies_all


def _proxies_all(host: str) -> bool:
    return True


def _proxies_none(host: str) -> bool:
    return False


def _bypasses_proxy(host: str) -> bool:
    return bool(proxy_bypass(host))


class AddressCheck:
    def __init__(
        self,
        policy: PolitenessConfig,
        dns: DnsCache,
        lookups: LookupLimits,
        aside: SetsAside,
        resolves_here: Callable[[str], bool],
        on_unidentified: Callable[[ConfigError], None],
    ) -> None:
        """Call `on_unidentified` when a crawl without a contact was about to connect to a public address."""
        self._guard = AddressGuard(policy.allow_private_addresses, policy.allow_addresses)
        self._has_contact = bool(policy.contact)
        self._dns = dns
        self._lookups = lookups
        self._aside = aside
        self._resolves_here = resolves_here
        self._on_unidentified = on_unidentified
        self._failed_lookups: BoundedDict[str, int] = BoundedDict(FAILED_LOOKUPS_KEPT)

    def __repr__(self) -> str:
        return f"<AddressCheck failed_lookups={len(self._failed_lookups)}>"

    def proxy_resolves(self, host: str) -> bool:
        return not self._resolves_here(host) and literal_address(host) is None

    def known(self, host: str) -> str | None:
        """Return the address to connect to; empty if a proxy finds it, None if unknown. No I/O. Raises Closed."""
        if self.proxy_resolves(host):
            self._require_contact()
            return ""
        found = self._dns.cached_addresses(host)
        return self._require_allowed(found) if found else None

    async def find(self, host: str) -> str:
        """Look up and check the host's addresses, and return one; empty if a proxy finds it. Raises Closed."""
        if self._aside.blacklist.of_host(host):
            raise Closed(is_aside=True)
        if self.proxy_resolves(host):
            self._require_contact()
            return ""
        await self._take_turn(host)
        try:
            found = await self._look_up_address(host)
        except DnsError as error:
            raise self._after_failed_lookup(host, error) from error
        self._failed_lookups.pop(host, None)
        return self._require_allowed(found)

    async def _take_turn(self, host: str) -> None:
        if self._dns.has_answer(host) or self._dns.asking_ms(host) is not None:
            return
        if self._dns.under_way >= LOOKUPS_UNDER_WAY_MAX:
            raise Closed(retry_ms=LOOKUP_RETRY_MS)
        if wait_ms := await self._lookups.take_turn(host):
            raise Closed(retry_ms=min(wait_ms, LOOKUP_WAIT_MS_MAX))

    async def _look_up_address(self, host: str) -> list[str]:
        """Return the host's addresses. Wait only briefly, so that silent name servers do not fill the node."""
        if (self._dns.asking_ms(host) or 0) >= WAIT_MS_MAX:
            raise Closed(retry_ms=LOOKUP_RETRY_MS)
        try:
            async with Patience(WAIT_MS_MAX / 1000):
                return await self._dns.lookup(host)
        except TimeoutError:
            raise Closed(retry_ms=LOOKUP_RETRY_MS) from None

    def _after_failed_lookup(self, host: str, error: DnsError) -> Closed:
        """Return the URL's fate: never fetched if DNS denies the name; a silent DNS counts as one failure."""
        if error.reason in NO_SUCH_NAME:
            return Closed(reason="unresolved")
        is_new = self._failed_lookups.get(host, 0) != error.failures
        self._failed_lookups.remember(host, error.failures)
        return Closed(retry_ms=error.retry_after_ms, failure="dns" if is_new else "")

    def _require_allowed(self, found: list[str]) -> str:
        if kind := self._guard.refusal(found):
            raise Closed(reason="refused-address", is_aside=True, about=f"the address {', '.join(found)} is {kind}")
        if len(self._aside.blacklist) and any(map(self._aside.refuses_address, found)):
            raise Closed(is_aside=True)
        if not self._has_contact and addresses.refusal_of_address(found[0]) is None:
            self._require_contact()
        return found[0]

    def _require_contact(self) -> None:
        if not self._has_contact:
            self._on_unidentified(ConfigError(UNIDENTIFIED))
            raise Closed(retry_ms=UNIDENTIFIED_MS)
