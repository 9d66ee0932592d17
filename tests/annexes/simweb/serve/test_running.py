"""A web in processes of its own: who serves, and how all of them end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import dns.message
import dns.query
import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl_simweb.serve.access_log import read_log
from bigcrawl_simweb.serve.lookup_log import LookupOutcome, read_lookups
from bigcrawl_simweb.serve.running import ServingOptions, serve_until_signal
from tests.annexes.simweb.scripted import TIMEOUT_S, A, ScriptedWeb, connected, hear, request
from tests.support.running.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGE = 1 << 30


@dataclass
class Origin:
    """The first of the processes, and where it serves."""

    process: subprocess.Popen[bytes]
    port: int
    dns_port: int
    directory: Path

    def others(self) -> list[int]:
        return list(map(int, Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()))

    def server_pid(self, address: str = A) -> int:
        return int(hear(self.port, request("/", Connection="close")).body)

    def server_while_stopped(self, pid: int) -> int:
        """Who serves a connection that is made while one process is stopped."""
        os.kill(pid, signal.SIGSTOP)
        try:
            return self.server_pid()
        finally:
            os.kill(pid, signal.SIGCONT)

    def ended(self) -> tuple[int, str]:
        """Wait for the first process, and return its status and what it said at last."""
        _, said = self.process.communicate(timeout=300)
        return self.process.returncode, said.decode()


@contextmanager
def served(directory: Path, processes: int, log_bytes_max: int = LARGE) -> Iterator[Origin]:
    logs = [str(directory / name) for name in ("access.log", "lookups.log")]
    command = [sys.executable, "-m", "tests.annexes.simweb.running_origin", str(processes), *logs, str(log_bytes_max)]
    process = spawn(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        try:
            assert process.stdout is not None
            port, dns_port = map(int, process.stdout.readline().split())
            yield Origin(process, port, dns_port, directory)
        finally:
            process.kill()


@contextmanager
def watched(pids: list[int]) -> Iterator[select.poll]:
    """A poll that tells when the processes have ended, also when they are nobody's children any more."""
    poll = select.poll()
    with ExitStack() as stack:
        for pid in pids:
            fd = os.pidfd_open(pid)
            stack.callback(os.close, fd)
            poll.register(fd, select.POLLIN)
        yield poll


def test_processes_share_addresses_and_log_and_end_together(tmp_path: Path):
    """Each process serves what another has no time for; all write to one log, and SIGTERM to the first ends all."""
    with served(tmp_path, 2) as origin:
        (other,) = origin.others()
        first = origin.process.pid
        assert origin.server_while_stopped(first) == other
        assert origin.server_while_stopped(other) == first
        with watched([other]) as poll:
            origin.process.terminate()
            assert origin.ended() == (0, "")
            assert poll.poll(0)
        with pytest.raises(ConnectionRefusedError):
            connected(origin.port)
    assert [line.status for line in read_log(tmp_path / "access.log")] == [200, 200]


def test_resolver_is_served_beside_the_web(tmp_path: Path):
    """The first process answers for the names, and logs the look-ups."""
    with served(tmp_path, 2) as origin:
        reply = dns.query.udp(dns.message.make_query("www.sim.example", "A"), "127.0.0.1", TIMEOUT_S, origin.dns_port)
        assert reply.answer[0][0].address == A
        origin.process.terminate()
        assert origin.ended() == (0, "")
    assert [lookup.outcome for lookup in read_lookups(tmp_path / "lookups.log")] == [LookupOutcome.FOUND]


def test_interrupt_ends_all_processes_quietly(tmp_path: Path):
    """SIGINT to the whole group, as a terminal sends it, is an order to end and not a fault."""
    with served(tmp_path, 3) as origin:
        for pid in (*origin.others(), origin.process.pid):
            os.kill(pid, signal.SIGINT)
        assert origin.ended() == (0, "")


def test_processes_do_not_outlive_the_first(tmp_path: Path):
    """When the first process is killed the others end by themselves."""
    with served(tmp_path, 3) as origin:
        others = origin.others()
        assert len(others) == 2
        with watched(others) as poll:
            origin.process.kill()
            ended: set[int] = set()
            while len(ended) < 2:
                found = poll.poll(1000 * TIMEOUT_S)
                assert found
                ended.update(fd for fd, _ in found)


def test_death_of_one_process_is_told_and_ends_all(tmp_path: Path):
    """A server process that dies takes its connections along, so the web does not go on as if nothing were."""
    with served(tmp_path, 3) as origin:
        victim, other = origin.others()
        with watched([other]) as poll:
            os.kill(victim, signal.SIGKILL)
            status, said = origin.ended()
            assert status == 1
            assert f"server process {victim} has died, exit status or signal 9" in said
            assert poll.poll(0)


@pytest.mark.parametrize("meets_it", ["first", "other"])
def test_log_that_cannot_be_written_ends_the_web(tmp_path: Path, meets_it: str):
    """A full disk is told, by whichever process meets it: an exchange that is not in the log never was."""
    # Room for the first line, and for half of the first exchange's.
    with served(tmp_path, 2, log_bytes_max=150) as origin:
        (other,) = origin.others()
        first = origin.process.pid
        stopped, serving = (other, first) if meets_it == "first" else (first, other)
        assert origin.server_while_stopped(stopped) == serving
        status, said = origin.ended()
    assert status == 1
    assert "a log cannot be written: " in said
    assert ("has died, exit status or signal 1" in said) is (meets_it == "other")
    assert list(read_log(tmp_path / "access.log")) == []


def test_impossible_wishes_are_refused(tmp_path: Path):
    """No process at all, or a log that cannot be, is an error before anything is served."""
    for wish, message in (
        (ServingOptions(processes=0), "processes is 0; must be at least 1"),
        (ServingOptions(log=tmp_path / "nowhere" / "log"), "access log .* cannot be opened"),
        (ServingOptions(lookup_log=tmp_path / "nowhere" / "log"), "log of look-ups .* cannot be opened"),
    ):
        with pytest.raises(ConfigError, match=message):
            serve_until_signal(ScriptedWeb({}), [], wish, print)
