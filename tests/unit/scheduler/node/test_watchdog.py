"""The watchdog ends a process that stands still, and no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.node.watchdog import STOOD_STILL
from tests.support.crawling.verdicts import pause
from tests.support.running.processes import spawn, wait_until

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import asyncio, logging, re, sys, threading, time
from bigcrawl.scheduler.node.watchdog import Watchdog

logging.basicConfig(stream=sys.stdout)
async def main():
    watchdog = Watchdog({seconds}, lambda: "http://a.example/page")
    watchdog.start(asyncio.get_running_loop())
    await asyncio.sleep(0)
    print("watched", flush=True)
{then}
    watchdog.stop()

asyncio.run(main())
"""


def program(then: str, seconds: float = 1) -> subprocess.Popen[bytes]:
    """A watched process that does something; its output is one pipe."""
    text = PROGRAM.format(seconds=seconds, then="\n".join(f"    {line}" for line in then.splitlines()))
    process = spawn([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    assert process.stdout.readline() == b"watched\n"
    return process


def end_of(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=90)
    return process.returncode, output.decode()


@pytest.mark.timeout(100)
@pytest.mark.parametrize(
    "line", [pytest.param("while True: pass", marks=pytest.mark.long("computes")), "threading.Event().wait()"]
)
def test_loop_that_stands_still_is_ended(line: str) -> None:
    """It computes, or waits, for ever: the stack and the page are told."""
    status, said = end_of(program(line))
    assert status == STOOD_STILL
    assert "stood still for 1 s" in said
    assert "http://a.example/page" in said
    assert "in main" in said


@pytest.mark.timeout(100)
def test_code_that_keeps_the_interpreters_lock_is_ended() -> None:
    """No thread of Python runs; the kernel's timer ends it, and the stack is told."""
    status, said = end_of(program('re.match("(a|a)*$", "a" * 60 + "b")'))
    assert status == -signal.SIGVTALRM
    assert "in main" in said


@pytest.mark.timeout(100)
def test_suspended_process_goes_on() -> None:
    """Stopped for longer than it may stand still, it has stood still for no longer than before."""
    process = program("for _ in range(8): await asyncio.sleep(0.1)\nprint('went on')", seconds=1)
    os.kill(process.pid, signal.SIGSTOP)
    pause(3)
    os.kill(process.pid, signal.SIGCONT)
    status, said = end_of(process)
    assert (status, said) == (0, "went on\n")


@pytest.mark.long("computes for seconds; a process that is stopped does not matter either")
@pytest.mark.timeout(100)
def test_slow_callbacks_that_wait_do_not_matter() -> None:
    """What is awaited lets the loop go on; so do threads that compute."""
    then = """
threading.Thread(target=exec, args=("while True: pass",), daemon=True).start()
await asyncio.sleep(2)
print("went on")
"""
    assert end_of(program(then)) == (0, "went on\n")


@pytest.mark.timeout(100)
def test_prompt_of_a_debugger_is_left_alone(tmp_path: Path) -> None:
    """Who stands at a breakpoint looks at it for longer."""
    output = tmp_path / "out"
    command = [sys.executable, "-c", PROGRAM.format(seconds=1, then="    breakpoint()")]
    with output.open("wb") as file:
        process = spawn(command, stdin=subprocess.PIPE, stdout=file)
    wait_until(lambda: b"(Pdb)" in output.read_bytes(), "it stands at the prompt", timeout_s=60)
    pause(3)
    process.communicate(b"continue\n", timeout=60)
    assert process.returncode == 0


def test_nothing_is_watched_where_it_is_off() -> None:
    """Zero seconds: for ever."""
    assert end_of(program("time.sleep(1.5); print(threading.active_count())", seconds=0)) == (0, "1\n")
