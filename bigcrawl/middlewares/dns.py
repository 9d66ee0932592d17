"""The reactor's resolver, based on the frontier's DNS cache: `TWISTED_DNS_RESOLVER`, set by the add-on.

Each address is checked, except those of the operator's proxies. Without a frontier (`scrapy shell http://localhost/`)
all addresses are allowed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.reactor import is_asyncio_reactor_installed
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver, IHostResolution
from zope.interface import implementer

from bigcrawl.config import read_dns
from bigcrawl.exceptions import ConfigError
from bigcrawl.politeness.dns_cache import GRACE_MS, DnsError
from bigcrawl.politeness.dns_shared import choose_dns, shared_dns
from bigcrawl.scheduler.adapter.registry import connection_refusal, is_proxy

if TYPE_CHECKING:
    from typing import Self


@implementer(IHostResolution)
class PendingResolution:
    def __init__(self, name: str) -> None:
        self.name = name

    def cancel(self) -> None:
        """Do nothing: the cache keeps the answer."""


@implementer(IHostnameResolver)
class Resolver:
    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor

    @classmethod
    def from_crawler(cls, crawler: Any, reactor: Any) -> Self:
        with suppress(ConfigError):  # the add-on reports the error in one line
            choose_dns(read_dns(crawler.settings))
        return cls(reactor)

    def install_on_reactor(self) -> None:
        """Take over the reactor's name resolution; raise ConfigError if it is not the asyncio reactor."""
        if not is_asyncio_reactor_installed():
            raise ConfigError(
                "bigcrawl's resolver needs the asyncio reactor; leave TWISTED_REACTOR as it is, or set it to "
                "'twisted.internet.asyncioreactor.AsyncioSelectorReactor'"
            )
        self._reactor.installNameResolver(self)

    def resolveHostName(  # noqa: N802 - Twisted's name
        self,
        resolutionReceiver: Any,  # noqa: N803 - Twisted's name
        hostName: str,  # noqa: N803 - Twisted's name
        portNumber: int = 0,  # noqa: N803 - Twisted's name
        addressTypes: Any = None,  # noqa: N803 - Twisted's name
        transportSemantics: str = "TCP",  # noqa: N803 - Twisted's name
    ) -> PendingResolution:
        resolution = PendingResolution(hostName)
        resolutionReceiver.resolutionBegan(resolution)
        known = shared_dns().cached_addresses(hostName, GRACE_MS)
        if known is not None:
            self._pass_addresses(resolutionReceiver, self._allowed_addresses(hostName, known), portNumber)
        else:
            deferred_from_coro(self._look_up(resolutionReceiver, hostName, portNumber))
        return resolution

    async def _look_up(self, receiver: Any, host: str, port: int) -> None:
        try:
            found = await shared_dns().lookup(host.rstrip(".").lower())
        except DnsError:
            found = []
        self._pass_addresses(receiver, self._allowed_addresses(host, found), port)

    def _allowed_addresses(self, host: str, found: list[str]) -> list[str]:
        return found if is_proxy(host) or not connection_refusal(found) else []

    def _pass_addresses(self, receiver: Any, found: list[str], port: int) -> None:
        for address in found[:1]:
            kind = IPv6Address if ":" in address else IPv4Address
            receiver.addressResolved(kind("TCP", address, port))
        receiver.resolutionComplete()
