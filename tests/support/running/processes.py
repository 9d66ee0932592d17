"""Processes that tests start: none of them outlives the test run, however it ends.

Two ways, for two kinds:

- `spawn` is for what a test starts itself. The kernel kills the process when its parent dies
  (prctl(PR_SET_PDEATHSIG)).
- `no_strays_below` is for what the product starts, which must outlive its parent: a watcher, told of the
  run's end by the end of its input, kills the servers that still work below a directory.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

POLL_S, POLL_S_MAX = 0.01, 0.25

# "Parent" means the *thread* that forked: a server started in a worker thread would be killed when that
# thread ends, in mid-test. So all are started by this one thread, which lives as long as the interpreter.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")

# 1 is PR_SET_PDEATHSIG, 9 is SIGKILL. A parent that died before the prctl would never be noticed: look once.
# An exec'ed wrapper and no preexec_fn, which is not safe in a process with threads.
_TIE = """
import ctypes, os, sys
if ctypes.CDLL(None, use_errno=True).prctl(1, 9, 0, 0, 0) != 0:
    sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
if os.getppid() != int(sys.argv[1]):
    sys.exit("the test run is over")
os.execv(sys.argv[2], sys.argv[2:])
"""

_WATCH = """
import os, signal, sys
root = sys.argv[1]
sys.stdin.buffer.read()
for name in filter(str.isdigit, os.listdir("/proc")):
    try:
        program = os.path.basename(os.readlink(f"/proc/{name}/exe"))
        where = os.readlink(f"/proc/{name}/cwd").removesuffix(" (deleted)")
        inside = os.path.commonpath([root, where]) == root
        if inside and program in ("redis-server", "valkey-server", "redis-check-rdb"):
            os.kill(int(name), signal.SIGKILL)
    except (OSError, ValueError):
        pass
"""


def spawn(argv: Sequence[str | os.PathLike[str]], **options: Any) -> subprocess.Popen[bytes]:
    """Start a process that is killed when the test run dies; `argv[0]` is a path, `options` are Popen's."""
    tied = [sys.executable, "-ISc", _TIE, str(os.getpid()), *argv]
    options.setdefault("stdin", subprocess.DEVNULL)

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(tied, start_new_session=True, **options)

    return _spawner.submit(start).result()


@contextlib.contextmanager
def no_strays_below(directory: Path) -> Iterator[None]:
    """Kill, by pid, every Redis or Valkey whose working directory is below `directory` at the end.

    The end of the block, or of the whole test run by any signal.
    """
    watcher = subprocess.Popen(
        [sys.executable, "-ISc", _WATCH, str(directory.resolve())],
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the tests
    )
    try:
        yield
    finally:
        watcher.communicate(timeout=300)


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 300) -> None:
    """Wait for another process to do what no call here can wait for; fail, saying `what`, after the bound.

    Asking takes a quarter of the time at most, though it may be a command: who is waited for needs the CPU. What has
    taken long is asked for less often: the end is seen a twentieth later at most.
    """
    began = time.monotonic()
    deadline = began + timeout_s
    pause = threading.Event()
    while True:
        asked = time.monotonic()
        if condition():
            return
        answered = time.monotonic()
        if answered > deadline:
            raise TimeoutError(f"not within {timeout_s} s: {what}")
        pause.wait(max(POLL_S, 3 * (answered - asked), min(POLL_S_MAX, (answered - began) / 20)))


def listening(pid: int) -> set[str]:
    """The addresses, in the kernel's notation, that the TCP sockets of this process listen at."""
    opened = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            opened.add(str(file.readlink()))
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in opened:
                found.add(words[1])
    return found


def connected_to(port: int) -> int:
    """How many connections of IPv4 a port of this machine has that its server has not closed, accepted or not."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(words[1].endswith(f":{port:04X}") and words[3] in {"01", "08"} for words in lines)
