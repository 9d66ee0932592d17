"""A name server of a test's own on a free port of this machine: the simulated web's resolver with a dict of names."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bigcrawl_simweb.serve.resolver import DnsServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from bigcrawl_simweb.basics.answer import Answer
    from bigcrawl_simweb.basics.name_record import NameFault, NameRecord

    Said = str | NameRecord | NameFault | None


class Zone:
    """What names resolve to, `*.a.example` too; a list is one answer a question, the last one for all that follow.

    Attributes:
        asked: how often each name was asked for, over all types and tries.
    """

    def __init__(self, names: Mapping[str, Said | Sequence[Said]]) -> None:
        self.names = dict(names)
        self.asked: Counter[str] = Counter()

    def address_of(self, name: str) -> Said:
        said = self.names.get(name, self.names.get(f"*.{name.partition('.')[2]}"))
        number = self.asked[name]
        self.asked[name] += 1
        if said is None or not isinstance(said, list):
            return said  # type: ignore[return-value]
        return said[min(number, len(said) - 1)]

    def answer(self, host: str, target: str, port: int, **_: object) -> Answer:
        raise NotImplementedError("only names are served")


@asynccontextmanager
async def serving(zone: Zone, ttl_s: int = 300, address: str = "127.0.0.1") -> AsyncIterator[str]:
    """Answer for a zone; yields the server as BIGCRAWL_DNS_SERVERS has it."""
    resolver = DnsServer(zone, ttl_s)
    await resolver.start(address)
    try:
        yield f"{address}:{resolver.port}"
    finally:
        await resolver.stop()
