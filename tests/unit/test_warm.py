"""Commands that start warm are processes like those that start cold."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running import warm
from tests.support.running.processes import wait_until

LOOKS = """
import json, os, signal, sys
print(json.dumps({
    "arguments": sys.argv[1:], "cwd": os.getcwd(), "variables": sorted(os.environ),
    "session": os.getsid(0) == os.getpid(),
    "path": sys.path[:2], "files": len(os.listdir("/proc/self/fd")), "input": sys.stdin.read(), "name": __name__,
    "handlers": [str(signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
}))
print("told", file=sys.stderr)
"""
ENDS = {
    "of itself": "",
    "as it says": "import sys; sys.exit(7)",
    "with a word": "import sys; sys.exit('no such seed')",
    "by an error": "raise ValueError('broken')",
    "by a signal": "import os; os.kill(os.getpid(), 15)",
    "handlers run": "import atexit; atexit.register(print, 'the end')",
    "threads first": "import threading, time; threading.Timer(0.2, print, ['later']).start()",
}


def both(directory: Path, program: str, *arguments: str) -> list[subprocess.CompletedProcess[str]]:
    """What a program does started cold and started warm."""
    directory = directory.resolve()
    (directory / "program.py").write_text(program)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": "/nowhere", "LC_ALL": "C.UTF-8"}
    cold = subprocess.run(
        ["env", "--default-signal=HUP,INT", sys.executable, "-m", "program", *arguments],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    return [cold, warm.run(["program", *arguments], cwd=directory, env=environment)]


def test_it_has_what_it_was_given(tmp_path: Path) -> None:
    """Arguments, directory, environment, files, session and signals are those of a cold start."""
    cold, started_warm = both(tmp_path, LOOKS, "-a", "b=c")
    assert started_warm.stdout == cold.stdout
    assert started_warm.stderr == cold.stderr == "told\n"


@pytest.mark.parametrize("how", ENDS)
def test_it_ends_as_a_cold_one(tmp_path: Path, how: str) -> None:
    """Status, output and the last line of what went wrong are the same."""
    cold, started_warm = both(tmp_path, ENDS[how])
    assert started_warm.returncode == cold.returncode
    assert started_warm.stdout == cold.stdout
    assert started_warm.stderr.splitlines()[-1:] == cold.stderr.splitlines()[-1:]


def test_it_is_killed_by_its_number(tmp_path: Path) -> None:
    """kill -9 ends it and nobody else, and it is gone when it has been waited for."""
    (tmp_path / "sleeper.py").write_text("print('up', flush=True)\nimport time\ntime.sleep(1000)")
    first, second = (warm.start(["sleeper"], cwd=tmp_path, stdout=subprocess.PIPE) for _ in range(2))
    for process in (first, second):
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
    with pytest.raises(subprocess.TimeoutExpired):
        first.wait(0.01)
    os.kill(first.pid, signal.SIGKILL)
    assert first.wait(120) == -signal.SIGKILL
    assert not Path(f"/proc/{first.pid}").exists()
    assert second.poll() is None
    second.terminate()
    assert second.wait(120) == -signal.SIGTERM
    for process in (first, second):
        assert process.stdout is not None
        process.stdout.close()


def test_it_dies_with_the_test_run(tmp_path: Path) -> None:
    """No command outlives a run of tests that was killed."""
    (tmp_path / "sleeper.py").write_text("print('up', flush=True)\nimport time\ntime.sleep(1000)")
    run = (
        "import subprocess, time; from pathlib import Path; from tests.support.running import warm\n"
        f"process = warm.start(['sleeper'], cwd=Path({str(tmp_path)!r}), stdout=subprocess.PIPE)\n"
        "process.stdout.readline(); print(process.pid, flush=True); time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", run], stdout=subprocess.PIPE) as tests:
        assert tests.stdout is not None
        pid = int(tests.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        tests.kill()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the command is gone")


def test_it_reads_what_it_is_sent(tmp_path: Path) -> None:
    """A pipe instead of an empty input, and its end."""
    (tmp_path / "program.py").write_text("import sys; print(sys.stdin.read().upper(), end='')")
    process = warm.start(["program"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write(b"sent")
        process.stdin.close()
        assert process.stdout.read() == b"SENT"
    assert process.wait(300) == 0
