"""Runs of pytest in forks of this process."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import math
import os
import re
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LEFT_TO_FORKS: Final = re.compile(
    r"__main__ | scripts\b"
    r"| twisted\.internet\.reactor"  # it opens descriptors, which forks would share
    r"| (?:tests | benchmarks)\b (?!\.support\b)",  # pytest changes their asserts while it imports them
    re.VERBOSE,
)
_MEMORY_BYTES: Final = 2 << 30  # beyond what this process has: a change may make a list without end
_POLL_SECONDS: Final = 0.01
_PR_SET_PDEATHSIG: Final = 1
_ARGUMENTS: Final = (
    *("-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=1"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of plugins that this process has imported
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use: CPU seconds of one process, and seconds on the clock. Beyond them it counts as failed."""

    cpu_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Run:
    """A run that ended: there were tests and all passed, or not; its CPU seconds, with those of its processes."""

    passed: bool
    cpu_seconds: float


def run_tests(tests: Sequence[str], output: Path, limits: Limits, modules: Path | None = None) -> Run:
    """Run tests in a fork, up to the first that fails.

    Args:
        tests: paths, from the current directory.
        output: where what pytest prints goes.
        limits: what the run may use.
        modules: where the names of all modules go that the run has imported, in their order. None: nowhere.
    """
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _become_run(parent, tests, output, limits, modules)
    deadline = time.monotonic() + limits.seconds
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    return Run(os.waitstatus_to_exitcode(status) == pytest.ExitCode.OK, usage.ru_utime + usage.ru_stime)


def die_with(parent: int) -> None:
    """Have this process killed when its parent ends, however that ends.

    Raises:
        OSError: the kernel refuses to.
        SystemExit: the parent has ended.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    if os.getppid() != parent:
        sys.exit("the parent has ended")


def _become_run(parent: int, tests: Sequence[str], output: Path, limits: Limits, modules: Path | None) -> None:
    """The fork's whole life."""
    code: int = pytest.ExitCode.INTERNAL_ERROR
    try:
        die_with(parent)
        os.setsid()
        _limit(limits)
        with output.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        code = pytest.main([*_ARGUMENTS, *tests], plugins=[_NoShrinking()])
        sys.stdout.flush()
        if modules is not None:
            modules.write_text("\n".join(sys.modules))
    finally:
        os._exit(code)


def _limit(limits: Limits) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + _MEMORY_BYTES
    cpu = math.ceil(limits.cpu_seconds)
    for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, cpu)):
        resource.setrlimit(kind, (most, most))


class _NoShrinking:
    """A plugin of pytest: hypothesis looks for a failing example, and for no smaller one."""

    @pytest.hookimpl(trylast=True)  # when the project's conftest has chosen a profile
    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings  # pytest has prepared it by now

        name = settings.get_current_profile_name()
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(name, settings.get_profile(name), phases=phases, database=None, deadline=None)
        settings.load_profile(name)


def import_all_but(changed: str, modules: Iterable[str]) -> None:
    """Import what forks would otherwise import each, except a module and all modules that import it."""
    without = _Without(changed)
    sys.meta_path.insert(0, without)
    for name in modules:
        if not _LEFT_TO_FORKS.match(name):
            with contextlib.suppress(Exception):  # a fork that needs it imports it, or says why it cannot
                importlib.import_module(name)
    sys.meta_path.remove(without)
    gc.freeze()


class _Without:
    """A finder of modules for which there is no module of a name. Python forgets a module whose import has failed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == self._name:
            raise ImportError(name)
