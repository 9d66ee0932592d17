"""A Python with Scrapy, Twisted and bigcrawl imported, that forks a process for each command it is told.

Started by `tests.support.running.warm` as a script, so that no package of the tests is imported. It has one thread and
no reactor: a fork of it is what a fresh interpreter is after its imports. It imports when the first process of the run
connects, and forks a server of its own for each of them, which ends with it and ends all that it has forked.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
import warnings
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
# What a crawl imports late, by name and not by an import of bigcrawl's.
SCRAPY = (
    "scrapy.core.downloader.handlers.http11",
    "scrapy.core.scheduler",
    "scrapy.dupefilters",
    "scrapy.exporters",
    "scrapy.resolver",
    "scrapy.squeues",
    "scrapy.statscollectors",
)
THREADED = ("page_index.parquet",)  # pyarrow starts threads when it is imported
PACKAGES = (
    "bigcrawl",
    "scrapy.commands",
    "scrapy.contracts",
    "scrapy.downloadermiddlewares",
    "scrapy.extensions",
    "scrapy.spidermiddlewares",
)


def warm_up() -> None:
    """Import what crawls, commands and the simulated web import, and read the list of public suffixes.

    None of it may start a thread or a reactor.
    """
    names = list(SCRAPY)
    for package in PACKAGES:
        names += [
            found.name for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
        ]
    for name in names:
        if not name.endswith(("__main__", *THREADED)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                importlib.import_module(name)
    sys.modules["bigcrawl.url.domain"].PublicSuffixes.bundled()
    assert "twisted.internet.reactor" not in sys.modules
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()  # a fork that looked through all of this for garbage would copy it


def become(told: dict[str, Any], files: list[int]) -> None:
    """Turn this fork into the process that was asked for: session, working directory, environment, files, arguments."""
    os.setsid()
    # As a terminal has them, however the tests were started: nohup and `&` have them ignored.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # the server's, and those that tell of other forks
    os.chdir(told["cwd"])
    os.environ.clear()
    os.environ.update(told["environment"])
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:1] = [told["cwd"], *paths]
    sys.argv = told["words"]


def end_with(parent: int) -> None:
    """Have this fork killed when the process that forked it ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != parent:
        os._exit(1)


def connected(listening: socket.socket) -> socket.socket:
    """Fork for each process that connects; the connection is returned in the fork alone."""
    parent = os.getpid()
    is_warm = False
    while True:
        connection, _ = listening.accept()
        if not is_warm:
            warm_up()
            is_warm = True
        if os.fork() == 0:
            end_with(parent)
            listening.close()
            return connection
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def serve(asked: socket.socket) -> dict[str, Any] | None:
    """Fork for each request until whoever asks ends.

    Returns:
        What to run, in a fork; None in the server, at the end.
    """
    parent = os.getpid()
    waiting = select.poll()
    waiting.register(asked, select.POLLIN)
    ends: dict[int, tuple[int, int]] = {}  # by pidfd: the process and where to say its status
    while True:
        for fd, _ in waiting.poll():
            if fd in ends:
                pid, status_fd = ends.pop(fd)
                waiting.unregister(fd)
                _, status = os.waitpid(pid, 0)
                os.close(fd)
                tell(status_fd, status)
                os.close(status_fd)
                continue
            message, fds, _, _ = socket.recv_fds(asked, 1 << 18, 4)
            if not message:
                return None
            told, (*files, status_fd) = json.loads(message), fds
            pid = os.fork()
            if pid == 0:
                end_with(parent)
                asked.detach()  # closed with the rest
                become(told, files)
                return told
            for file in files:
                os.close(file)
            tell(status_fd, pid)
            ended = os.pidfd_open(pid)
            ends[ended] = pid, status_fd
            waiting.register(ended, select.POLLIN)


def tell(fd: int, number: int) -> None:
    """Write a line; who asked may be gone, which is no matter."""
    try:
        os.write(fd, b"%d\n" % number)
    except BrokenPipeError:
        return


def run(module: str) -> NoReturn:
    """Do as `python -m MODULE` until its exit handlers have run; taking 1,200 modules apart is left to the kernel."""
    status: object = 0
    if not hasattr(sys.modules.get(module), "__path__"):
        sys.modules.pop(module, None)  # it is run, not imported
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code
    except Exception:  # noqa: BLE001 - what the interpreter does with any
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()  # Twisted reports an error that nobody took when its Deferred is freed
    if not isinstance(status, int | None):
        sys.stderr.write(f"{status}\n")
        status = 1
    for file in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            file.flush()
    os._exit(status or 0)


if __name__ == "__main__":
    told = serve(connected(socket.socket(fileno=int(sys.argv[1]))))
    if told is not None:
        run(told["words"][0])
