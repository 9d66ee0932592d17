"""Runs nodes beside each other, and adds up what they and their Redis do."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.nodes.servers import Servers

CALLS: Final = ("evalsha", "evalsha_ro", "fcall")


class Look(NamedTuple):
    """Totals since the start: of Redis, and of all nodes together."""

    at_s: float
    redis_s: float
    commands: float
    calls: float
    pages: float
    sent: float
    away: float
    node_s: float

    def since(self, before: Self) -> Look:
        """What was added."""
        return Look(*(now - then for now, then in zip(self, before, strict=True)))


def measured(
    nodes: int, directory: Path, servers: Servers, warm_up_s: float, seconds: float, settings: Mapping[str, object]
) -> tuple[Look, Look, int]:
    """Run nodes; return the totals before and after the seconds that count, and how many URLs had ended then."""
    with ExitStack() as stack:
        processes = []
        for number in range(nodes):
            words = (servers.url, str(directory), str(number), json.dumps(settings))
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.nodes.node", *words], stdout=subprocess.PIPE, text=True
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            processes.append(process)
        for process in processes:
            _told(process)
        time.sleep(warm_up_s)
        servers.reset_stats()
        before = _look(servers, processes)
        time.sleep(seconds)
        return before, _look(servers, processes), servers.ended()


def _look(servers: Servers, processes: list[subprocess.Popen[str]]) -> Look:
    stats = servers.commands()
    calls = sum(row["calls"] for name, row in stats.items() if name in CALLS)
    commands = sum(row["calls"] for row in stats.values())
    redis_s = servers.cpu_s()
    for process in processes:
        process.send_signal(signal.SIGUSR1)
    told = [_told(process) for process in processes]
    sums = [sum(one[name] for one in told) for name in ("pages", "sent", "away")]
    pages, sent, away = sums
    return Look(time.monotonic(), redis_s, commands, calls, pages, sent, away, sum(one["cpu_s"] for one in told))


def _told(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"a node ended with status {process.wait()}")
    told: dict[str, Any] = json.loads(line)
    return told
