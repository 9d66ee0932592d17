"""Connections of the download handler: to the address that was checked, and no more than may be open."""

from __future__ import annotations

import resource
import socket
from typing import TYPE_CHECKING, Final

import aiohttp
from aiohttp.abc import AbstractResolver

from bigcrawl.politeness import addresses
from bigcrawl.politeness.dns_cache import DnsError
from bigcrawl.politeness.dns_shared import shared_dns
from bigcrawl.scheduler.registry import is_crawling

if TYPE_CHECKING:
    import ssl as ssl_module

    from aiohttp.abc import ResolveResult
    from scrapy.crawler import Crawler

# Servers close an idle connection after 5 s (Apache) to 75 s (nginx); a request that meets the closing one
# costs a try.
KEEPALIVE_S: Final = 15.0
IDLE_MAX: Final = 4_096


class Connector(aiohttp.TCPConnector):
    """aiohttp's pool of connections on the frontier's DNS cache; the idle ones are bounded.

    How many fetches run at once is the frontier's business, so the pool sets no limit of its own. A broad crawl
    leaves an open connection behind with nearly every page: at 1,000 pages/s, more than a process may have.
    """

    def __init__(self, crawler: Crawler, ssl: ssl_module.SSLContext) -> None:
        bind = crawler.settings.get("DOWNLOAD_BIND_ADDRESS")
        super().__init__(
            ssl=ssl,
            limit=0,
            resolver=CheckedResolver(allow_private=crawler.settings.getbool("BIGCRAWL_ALLOW_PRIVATE_ADDRESSES")),
            use_dns_cache=False,
            keepalive_timeout=KEEPALIVE_S,
            local_addr=(bind, 0) if isinstance(bind, str) else bind,
        )
        self._idle_max = min(IDLE_MAX, raise_file_limit() // 2)

    @property
    def is_crowded(self) -> bool:
        """Whether as many connections are kept open, unused, as may be; before this none is worth closing."""
        # Private, by host and port; where it is missing, every connection is kept as long as aiohttp keeps it.
        return len(getattr(self, "_conns", ())) >= self._idle_max


class CheckedResolver(AbstractResolver):
    """Answers from the cache that the frontier filled; refuses what lies in a closed range."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The name's one address.

        Raises:
            OSError: there is none, or none that may be connected to.
        """
        name = host.rstrip(".").lower()
        try:
            found = shared_dns().peek(name) or await shared_dns().lookup(name)
        except DnsError as error:
            raise OSError(f"{host}: {error}") from error
        if not self._allow_private and is_crawling() and any(addresses.refusal(address) for address in found):
            raise OSError(f"{host} has an address in a closed range")
        return [_result(host, port, address) for address in found[:1]]

    async def close(self) -> None:
        """The cache is the process's."""


def _result(host: str, port: int, address: str) -> ResolveResult:
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    return {"hostname": host, "host": address, "port": port, "family": kind, "proto": 0, "flags": socket.AI_NUMERICHOST}


def raise_file_limit() -> int:
    """Let the process open as many files as it may, and return their number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
