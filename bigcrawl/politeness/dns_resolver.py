"""Asks name servers without waiting in threads: aiodns, which is c-ares with its own socket loop.

The hosts file is read first, and `localhost` is this machine (RFC 6761). Names are asked for as they stand: a search
list of resolv.conf is not gone through, and of nsswitch.conf only files and DNS are obeyed. A family is asked for
alone; the other one is asked for where the first has no address and the setting allows it.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Final

import pycares
from aiodns import DNSResolver
from aiodns.error import DNSError
from pycares import errno

from bigcrawl.politeness.dns_cache import Answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.config import DnsConfig

QUESTIONS_AT_A_TIME: Final = 1_000
"""Of a node: a name server that is slow for many names must not be sent ever more."""

QUESTIONS_A_CHANNEL: Final = 20_000
"""c-ares keeps every answer for its TTL, some 1.5 KB each, without a bound: a new channel begins with none."""

_FLAGS: Final = pycares.ARES_FLAG_NOSEARCH | pycares.ARES_FLAG_EDNS
_NO_SORT: Final = 1 << 7  # ARES_AI_NOSORT, which pycares does not name: sorting opens a socket for each address
_FAMILIES: Final = {
    "ipv4-first": (socket.AF_INET, socket.AF_INET6),
    "ipv6-first": (socket.AF_INET6, socket.AF_INET),
    "ipv4": (socket.AF_INET,),
    "ipv6": (socket.AF_INET6,),
}
_NO_NAME: Final = frozenset({errno.ARES_ENOTFOUND, errno.ARES_EBADNAME})  # no such name, or none that could be
_NO_DATA: Final = errno.ARES_ENODATA
_TEMPORARY: Final = frozenset({errno.ARES_ESERVFAIL, errno.ARES_EREFUSED, errno.ARES_ECONNREFUSED})


class DnsResolver:
    """A `Resolve` of `DnsCache`; makes its channel when first asked, and another one in another event loop."""

    def __init__(self, config: DnsConfig) -> None:
        self._config = config
        self._families: Sequence[socket.AddressFamily] = _FAMILIES[config.families]
        # c-ares doubles the time from try to try: so all of them fit into the whole.
        self._first_try_s = config.timeout_ms / 1_000 / (2**config.tries - 1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._channel: DNSResolver | None = None
        self._asked = 0
        self._free = asyncio.Semaphore(0)

    def __repr__(self) -> str:
        servers = ", ".join(self._config.servers) or "the machine's"
        return f"DnsResolver({servers}; {self._asked} questions on this channel)"

    async def __call__(self, host: str) -> Answer:
        """Return the addresses of a host with their TTL; none when DNS says that it has none.

        Raises:
            TimeoutError: no answer in time.
            OSError: as `socket.getaddrinfo` does: EAI_AGAIN when the name servers fail, EAI_FAIL otherwise.
        """
        self._enter_loop()
        async with self._free, asyncio.timeout(self._config.timeout_ms / 1_000):
            for family in self._families:
                answer = await self._ask(host, family)
                # Some servers deny a name that they have IPv4 addresses for when they are asked for IPv6, dnsmasq too.
                if answer is None and family == socket.AF_INET:
                    break
                if answer is not None and answer.addresses:
                    return answer
        return Answer((), None)

    async def close(self) -> None:
        """Give up the questions under way, which fail, and the channel; a later question opens another one."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _ask(self, host: str, family: socket.AddressFamily) -> Answer | None:
        """The addresses of one family; None when there is no such name."""
        channel = self._open_channel()  # kept here: it is closed when its last question is answered
        try:
            found = await channel.getaddrinfo(host, family, flags=_NO_SORT)
        except DNSError as error:
            status = error.args[0]
            if status in _NO_NAME:
                return None
            if status == _NO_DATA:
                return Answer((), None)
            raise _as_getaddrinfo(status, str(error.args[-1])) from error
        addresses = tuple(dict.fromkeys(node.addr[0].decode("ascii") for node in found.nodes))
        ttl_s = min((*(node.ttl for node in found.nodes), *(alias.ttl for alias in found.cnames)), default=0)
        return Answer(addresses, ttl_s * 1_000)

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
