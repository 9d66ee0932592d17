"""The name server as a program: `python -m benchmarks.dns.server DELAY_MS`; its port stands on its first line."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from bigcrawl_simweb.basics.name_record import NameFault, NameRecord
from bigcrawl_simweb.serve.resolver import DnsServer

if TYPE_CHECKING:
    from bigcrawl_simweb.basics.answer import Answer


class Names:
    """Any name; what becomes of it is its second label: `ok`, `dead`, `failing`; the first tells names apart."""

    def __init__(self, delay_ms: int) -> None:
        self._record = NameRecord(("192.0.2.1",), delay_ms=delay_ms)

    def address_of(self, name: str) -> NameRecord | NameFault | None:
        kind = name.split(".")[1]
        if kind == "dead":
            return None
        return NameFault.SERVFAIL if kind == "failing" else self._record

    def answer(self, host: str, target: str, port: int, **_: object) -> Answer:
        raise NotImplementedError("only names are served")


async def serve(delay_ms: int) -> None:
    resolver = DnsServer(Names(delay_ms))
    await resolver.start()
    print(resolver.port, flush=True)  # noqa: T201 - for who started it
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    await told.wait()
    await resolver.stop()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
