"""A simulated web in a process of its own, for benchmarks: simweb_origin SHAPE HOSTS LOG LOOKUP_LOG.

SHAPE is `prepared` (one answer of 21 KB, made once: what the server alone costs), `uniform` or `plain`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl_simweb.basics.addresses import address_of
from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.model.uniform import UniformWeb
from bigcrawl_simweb.model.web import Web
from bigcrawl_simweb.serve.listen import open_listeners
from bigcrawl_simweb.serve.running import ServingOptions, serve_until_signal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl_simweb.serve.served import ServedWeb

PAGE_BYTES = 21_000
SEED = 7


class PreparedWeb:
    """The same page at every URL, and names without end."""

    def __init__(self) -> None:
        self._answer = Answer(200, (("Content-Type", "text/html; charset=utf-8"),), b"x" * PAGE_BYTES)

    def answer(
        self, host: str, target: str, port: int, *, at_ms: int = 0, conditions: Mapping[str, str] | None = None
    ) -> Answer:
        return self._answer

    def address_of(self, name: str) -> str | None:
        return "127.16.0.1" if name.endswith(".example") else None


def make_web(shape: str, hosts: int) -> ServedWeb:
    match shape:
        case "prepared":
            return PreparedWeb()
        case "uniform":
            return UniformWeb(SEED, hosts)
        case _:
            return Web(SEED, hosts, 1000)


def main(shape: str, hosts: str, log: str, lookup_log: str) -> None:
    """Serve until SIGTERM; a line on stdout tells the ports of the web and of its resolver."""
    sockets = open_listeners(map(address_of, range(int(hosts))), 0)
    serving = ServingOptions(log=Path(log), dns=("127.0.0.1", 0), lookup_log=Path(lookup_log))
    serve_until_signal(make_web(shape, int(hosts)), sockets, serving, lambda ports: print(*ports, flush=True))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
