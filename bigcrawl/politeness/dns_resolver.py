"""Resolves names without threads, through aiodns: c-ares on the event loop.

The hosts file is read first, and `localhost` is this machine (RFC 6761). resolv.conf's search list is ignored, and of
nsswitch.conf only files and DNS apply.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Final

import pycares
from aiodns import DNSResolver
from aiodns.error import DNSError
from pycares import errno

from bigcrawl.clock import Patience
from bigcrawl.politeness.dns_cache import DnsAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.config import DnsConfig

QUESTIONS_AT_A_TIME: Final = 1_000
"""Limit on a node's concurrent questions, so that slow name servers do not get ever more of them."""

QUESTIONS_A_CHANNEL: Final = 20_000
"""A new channel is opened after this many: c-ares caches any number of answers, about 1.5 KB each, for their TTL."""

_FLAGS: Final = pycares.ARES_FLAG_NOSEARCH | pycares.ARES_FLAG_EDNS
_NO_SORT: Final = 1 << 7  # ARES_AI_NOSORT, which pycares does not define: sorting opens a socket for each address
_FAMILIES: Final = {
    "ipv4-first": (socket.AF_INET, socket.AF_INET6),
    "ipv6-first": (socket.AF_INET6, socket.AF_INET),
    "ipv4": (socket.AF_INET,),
    "ipv6": (socket.AF_INET6,),
}
_NO_NAME: Final = frozenset({errno.ARES_ENOTFOUND, errno.ARES_EBADNAME})
_NO_DATA: Final = errno.ARES_ENODATA
_TEMPORARY: Final = frozenset({errno.ARES_ESERVFAIL, errno.ARES_EREFUSED, errno.ARES_ECONNREFUSED})


class DnsResolver:
    """A `Resolve` for `DnsCache`. It opens its channel at the first question, and a new one in each event loop."""

    def __init__(self, config: DnsConfig) -> None:
        self._config = config
        self._families: Sequence[socket.AddressFamily] = _FAMILIES[config.families]
        # c-ares doubles the time of each try; this start makes all tries fit into the timeout.
        self._first_try_s = config.timeout_ms / 1_000 / (2**config.tries - 1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._channel: DNSResolver | None = None
        self._asked = 0
        self._free = asyncio.Semaphore(0)

    def __repr__(self) -> str:
        servers = ", ".join(self._config.servers) or "the machine's"
        return f"DnsResolver({servers}; {self._asked} questions on this channel)"

    async def __call__(self, host: str) -> DnsAnswer:
        """Return a host's addresses and TTL; no addresses if it has none.

        Raises TimeoutError, or OSError with EAI_*.
        """
        self._enter_loop()
        async with self._free, Patience(self._config.timeout_ms / 1_000):
            for family in self._families:
                answer = await self._query(host, family)
                # Some servers, dnsmasq too, answer "no such name" to an IPv6 question about an IPv4 name.
                if answer is None and family == socket.AF_INET:
                    break
                if answer is not None and answer.addresses:
                    return answer
        return DnsAnswer((), None)

    async def close(self) -> None:
        """Abort pending questions and close the channel. A later question opens a new one."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _query(self, host: str, family: socket.AddressFamily) -> DnsAnswer | None:
        channel = self._open_channel()  # the reference keeps it open until its last question is answered
        try:
            found = await channel.getaddrinfo(host, family, flags=_NO_SORT)
        except DNSError as error:
            status = error.args[0]
            if status in _NO_NAME:
                return None
            if status == _NO_DATA:
                return DnsAnswer((), None)
            raise _as_getaddrinfo(status, str(error.args[-1])) from error
        addresses = tuple(dict.fromkeys(node.addr[0].decode("ascii") for node in found.nodes))
        ttl_s = min((*(node.ttl for node in found.nodes), *(alias.ttl for alias in found.cnames)), default=0)
        return DnsAnswer(addresses, ttl_s * 1_000)

    def _enter_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._channel = loop, None
            self._free = asyncio.Semaphore(QUESTIONS_AT_A_TIME)

    def _open_channel(self) -> DNSResolver:
        if self._channel is None or self._asked >= QUESTIONS_A_CHANNEL:
            servers = list(self._config.servers) or None
            options = {"timeout": self._first_try_s, "tries": self._config.tries, "flags": _FLAGS}
            self._channel = DNSResolver(servers, self._loop, **options)
            self._asked = 0
        self._asked += 1
        return self._channel


def _as_getaddrinfo(status: int, message: str) -> OSError:
    if status == errno.ARES_ETIMEOUT:
        return TimeoutError(message)
    code = socket.EAI_AGAIN if status in _TEMPORARY else socket.EAI_FAIL
    return socket.gaierror(code, message)
