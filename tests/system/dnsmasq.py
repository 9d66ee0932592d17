"""Debian's dnsmasq as a caching resolver of a test's own, on a free port; stopped by its own pid."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.running.processes import spawn, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = "127.0.0.1"
PORT_IS_TAKEN = 2  # its exit status; somebody has taken the port since it was found free


@contextmanager
def dnsmasq(*options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run it with these options and nothing of the machine's; yields its address and port, and its process."""
    binary = shutil.which("dnsmasq", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if binary is None:
        raise FileNotFoundError("dnsmasq is not installed; run scripts/install_system as root")
    own = ["--conf-file=/dev/null", "--keep-in-foreground", "--no-resolv", "--no-hosts", "--user=root", "--pid-file="]
    while True:
        port = _free_port()
        where = [f"--listen-address={HERE}", "--bind-interfaces", f"--port={port}"]
        process = spawn([binary, *own, *where, *options], stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: _listens(port) or process.poll() is not None, "dnsmasq listens")  # noqa: B023
            if process.poll() == PORT_IS_TAKEN:
                continue
            yield f"{HERE}:{port}", process
            return
        finally:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((HERE, 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        return probe.connect_ex((HERE, port)) == 0
