"""A link of a set speed: the loopback device of a network namespace of this process's own, shaped by `tc`.

A packet is as large as Ethernet's, and what does not fit into the queue is dropped, as by a router. Redis is asked
through a unix socket, which is not shaped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Final

_INSIDE: Final = "BIGCRAWL_BENCH_NAMESPACE"
_QUEUE_MS: Final = 500  # of the link's bytes: routers have that, and more
_BURST_BYTES: Final = 16_000


def enter_own_namespace(module: str) -> None:
    """Start this program again, in a network namespace of its own; return in there.

    Raises:
        SystemExit: that program's status; or what is missing: root, `unshare` or `tc`.
    """
    if os.environ.get(_INSIDE):
        _run("ip", "link", "set", "lo", "up", "mtu", "1500")
        return
    missing = [name for name in ("unshare", "ip", "tc") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        raise SystemExit(f"needs root and unshare, ip and tc; missing: {', '.join(missing) or 'root'}")
    command = ["unshare", "--net", sys.executable, "-m", module, *sys.argv[1:]]
    raise SystemExit(subprocess.run(command, env={**os.environ, _INSIDE: "1"}, check=False).returncode)


def shape(mbit_per_s: float) -> None:
    """Let so much through from now on; 0: everything."""
    if not mbit_per_s:
        _run("tc", "qdisc", "replace", "dev", "lo", "root", "pfifo", "limit", "10000")
        return
    queue_bytes = round(mbit_per_s * 125_000 * _QUEUE_MS / 1000)
    rate = ["rate", f"{mbit_per_s}mbit", "burst", str(_BURST_BYTES), "limit", str(queue_bytes)]
    _run("tc", "qdisc", "replace", "dev", "lo", "root", "tbf", *rate)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
