"""The web in a process of its own: `python -m benchmarks.hostile.origin PLAN LOG`."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

from benchmarks.hostile.web import HostileWeb, Ports, WebPlan
from bigcrawl_simweb.basics.addresses import address_of
from bigcrawl_simweb.serve.listen import open_listeners
from bigcrawl_simweb.serve.running import ServingOptions, serve_until_signal
from tests.support.running.processes import spawn

if TYPE_CHECKING:
    from bigcrawl_simweb.serve.running import ServedPorts as SimwebPorts

_FILL = 3
_CONNECT_S = 0.2


class Origin:
    """A server of a plan's web, started and stopped here; `log` is what it was asked for."""

    def __init__(self, plan: WebPlan, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.log = directory / "access.log"
        command = [sys.executable, "-m", "benchmarks.hostile.origin", plan.as_json(), str(self.log)]
        self._process = spawn(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        told = self._process.stdout.readline()
        if not told:
            raise RuntimeError("the origin does not start; its last words are above")
        # Bound, so that nobody else takes it, and not listening.
        self._refusing = socket.create_server(("127.0.0.1", 0))
        self._dead, self._pending = _dead_socket()
        refusing = self._refusing.getsockname()[1]
        self._refusing.close()
        self.ports = Ports(int(told), self._dead.getsockname()[1], refusing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in (self._dead, *self._pending):
            sock.close()
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _dead_socket() -> tuple[socket.socket, list[socket.socket]]:
    """A port of all loopback addresses that lets every connection attempt wait, and what keeps it so.

    It listens, but nobody accepts, and its queue is full: the kernel drops what comes, as a firewall does.
    """
    [dead] = open_listeners([address_of(0)], 0)
    dead.listen(0)
    pending = []
    for _ in range(_FILL):
        client = socket.socket()
        client.settimeout(_CONNECT_S)
        pending.append(client)
        try:
            client.connect(("127.0.0.1", dead.getsockname()[1]))
        except TimeoutError:
            return dead, pending
    raise RuntimeError("connections to a full queue are not left waiting here; see tcp_abort_on_overflow(7)")


def main(plan_json: str, log: str) -> None:
    """Serve until SIGTERM; a line on stdout tells the port."""
    plan = WebPlan.from_json(plan_json)
    sockets = open_listeners(map(address_of, range(plan.hosts)), 0)
    serve_until_signal(HostileWeb(plan), sockets, ServingOptions(log=Path(log)), _tell)


def _tell(ports: SimwebPorts) -> None:
    print(ports.http, flush=True)  # noqa: T201 - the answer of this program


if __name__ == "__main__":
    main(*sys.argv[1:])
