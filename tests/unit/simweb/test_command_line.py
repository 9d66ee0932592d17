from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl.simweb.__main__ import main
from bigcrawl.simweb.access_log import AccessLog, LogLine, read_exchanges
from bigcrawl.simweb.checker import Rules, check
from bigcrawl.simweb.state import SavedWeb, load, save
from tests.unit.simweb.support import Crawler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Start = Callable[..., tuple[subprocess.Popen[str], tuple[int, ...]]]

SERVE = [sys.executable, "-m", "bigcrawl.simweb", "serve"]
READY = re.compile(r"simweb ready: port=(\d+) seeds=(\d+) seed=(\d+) pages=(\d+)\n")
SAVED = SavedWeb(seed=5, hosts=3, pages_per_host=9, agent="bigcrawl", port=1234)


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a server process and read its first line; whatever still runs afterwards is killed."""
    with ExitStack() as stack:

        def begin(*arguments: str) -> tuple[subprocess.Popen[str], tuple[int, ...]]:
            process = stack.enter_context(subprocess.Popen([*SERVE, *arguments], stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            assert process.stdout
            match = READY.fullmatch(process.stdout.readline())
            assert match
            return process, tuple(map(int, match.groups()))

        yield begin


def test_server_keeps_its_web_across_kills_and_a_crawl_of_both_lives_is_whole(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Port, seed and size come back from the state directory; the log goes on; SIGTERM ends with status 0."""
    state, log = tmp_path / "state", tmp_path / "access.log"
    options = ("--state", str(state), "--log", str(log))
    process, first = start(*options, "--seed", "9", "--hosts", "2", "--pages", "8")
    main(["seeds", "--state", str(state)])
    seeds = capsys.readouterr().out.split()
    assert seeds == [f"http://127.16.0.{host}:{first[0]}/" for host in (1, 2)]
    Crawler("bigcrawl").crawl(seeds)
    # Answered after everything else, and so after everything else was logged.
    with urllib.request.urlopen(seeds[1] + "robots.txt"):
        process.kill()
    process.wait()
    before = list(read_exchanges(log))
    expected = load(state).web().reachable(first[0], seeds)  # type: ignore[union-attr]
    assert check(before, Rules(expected=expected, port=first[0])).ok

    process, second = start(*options, "--port", "0")
    assert second == first == (first[0], 2, 9, 8)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    assert list(read_exchanges(log)) == before


def test_server_ends_with_its_parent():
    """With --with-parent a server does not outlive the process that started it."""
    code = f"import subprocess, sys; subprocess.Popen({[*SERVE, '--hosts', '1', '--with-parent']!r}); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdin
        assert parent.stdout
        assert READY.fullmatch(parent.stdout.readline())
        parent.kill()
        # The pipe is at its end when nobody holds it any more, the server included.
        assert parent.stdout.read() == ""


def test_server_whose_parent_has_gone_before_its_first_look_ends():
    """With the parent's PID given, even a parent that ended at once is missed."""
    command = [*SERVE, "--hosts", "1", "--with-parent"]
    code = f"import subprocess, os; subprocess.Popen([*{command!r}, str(os.getpid())])"
    answer = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert READY.fullmatch(answer.stdout)


def test_server_goes_on_while_its_parent_lives(start: Start):
    """A server that watches its parent ends by SIGINT, with status 0, when nothing else ends it."""
    process, (port, *_) = start("--hosts", "1", "--with-parent", str(os.getpid()))
    with socket.create_connection(("127.16.0.1", port)):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


def test_taken_port_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A kept port that another program has taken is an error: the crawl would find other hosts elsewhere."""
    with socket.socket() as other:
        other.bind(("127.16.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        save(tmp_path, SavedWeb(5, 3, 9, "bigcrawl", port))
        message = refusal(capsys, "serve", "--state", str(tmp_path))
    assert re.search(rf"port {port} of .* cannot be used: .*; stop what uses it", message)


@pytest.mark.parametrize(
    ("option", "value"),
    [("--seed", "6"), ("--hosts", "4"), ("--pages", "8"), ("--agent", "x"), ("--port", "99")],
)
def test_kept_web_cannot_be_made_another(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str):
    """Asking a directory for another web than it keeps is an error that names both values."""
    save(tmp_path, SAVED)
    message = refusal(capsys, "serve", "--state", str(tmp_path), option, value)
    assert f"is {value}, but {tmp_path / 'simweb.json'} keeps a web with" in message


@pytest.mark.parametrize("command", [["seeds"], ["check", "--log", "x"]])
def test_directory_without_a_web_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
):
    """What has not been served has no seeds and no answer."""
    assert "does not exist" in refusal(capsys, *command, "--state", str(tmp_path))


def test_check_says_ok_only_for_a_whole_and_polite_crawl(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """`check` exits 0 for a polite log of everything, 1 for a fetch missing, repeated, early or forbidden."""
    save(tmp_path, SAVED)
    web, delays = SAVED.web(), SAVED.web().crawl_delays_ms()
    expected = web.reachable(SAVED.port, web.seeds(SAVED.port))
    clocks = dict.fromkeys(web.addresses(), 0)
    lines = []
    for host in clocks:
        targets = [("/robots.txt", 200)]
        origin = f"http://{host}:{SAVED.port}"
        targets += [(url.removeprefix(origin), status) for url, status in expected.items() if url.startswith(origin)]
        for target, status in targets:
            lines.append(LogLine(clocks[host], clocks[host] + 5, "-", host, "GET", target, status, 1))
            clocks[host] += 5 + max(250, delays.get(host, 0))

    def status_of(log: list[LogLine], *options: str) -> int:
        path = tmp_path / "log"
        path.unlink(missing_ok=True)
        writer = AccessLog(path)
        for line in log:
            writer.write(line)
        writer.close()
        arguments = ["check", "--state", str(tmp_path), "--log", str(path), "--delay", "0.25", *options]
        return main(arguments)

    late = max(clocks.values()) + 10_000
    assert status_of(lines) == 0
    assert status_of(lines[:-1]) == 1
    assert "not fetched: 1" in capsys.readouterr().out
    assert status_of(lines[:-1], "--unfinished") == 0
    assert status_of(lines, "--delay", "0.251") == 1
    assert status_of(lines, "--delay", "0.251", "--tolerance", "1") == 0
    assert status_of(lines, "--server-delay", "0.256") == 1
    twice = LogLine(late, late, "-", "127.16.0.1", "GET", "/", 200, 1)
    assert status_of([*lines, twice]) == 1
    private = LogLine(late, late, "-", "127.16.0.2", "GET", "/private/item-0.html", 200, 1)
    assert status_of([*lines, private]) == 1
    assert "forbidden by robots.txt: 1" in capsys.readouterr().out


def test_state_is_read_as_it_was_written(tmp_path: Path):
    """A directory without a web gives None; one with a web gives its arguments; no temporary file stays."""
    directory = tmp_path / "new" / "state"
    assert load(directory) is None
    save(directory, SAVED)
    assert load(directory) == SAVED
    assert [path.name for path in directory.iterdir()] == ["simweb.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 1, "seed": 1}', '{"format": 1, "seed": "x"}'])
def test_damaged_state_is_an_error_not_a_fresh_start(tmp_path: Path, text: str):
    """A file that `save` did not write is never taken for none."""
    (tmp_path / "simweb.json").write_text(text)
    with pytest.raises(CorruptionError, match=r"simweb\.json: damaged"):
        load(tmp_path)


def test_state_of_another_format_is_refused(tmp_path: Path):
    """A later version's file is not guessed at."""
    save(tmp_path, SAVED)
    fields = json.loads((tmp_path / "simweb.json").read_text())
    (tmp_path / "simweb.json").write_text(json.dumps({**fields, "format": 2}))
    with pytest.raises(ConfigError, match="another format than 1"):
        load(tmp_path)
