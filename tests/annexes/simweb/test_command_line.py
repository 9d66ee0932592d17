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
from bigcrawl_simweb.__main__ import main
from bigcrawl_simweb.check.checker import CheckRules, check_exchanges
from bigcrawl_simweb.exhibits.table import EXHIBITS
from bigcrawl_simweb.model.expectations import OUTAGES
from bigcrawl_simweb.model.explain import SPACES
from bigcrawl_simweb.model.robots import KINDS, ROBOTS
from bigcrawl_simweb.model.state import SavedWeb, load_web, save_web
from bigcrawl_simweb.model.uniform import PAGE_BYTES, UniformWeb
from bigcrawl_simweb.serve.access_log import AccessLog, LogLine, read_exchanges
from tests.annexes.simweb.support import Crawler
from tests.support.running.ports import bind_lasting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Start = Callable[..., tuple[subprocess.Popen[str], tuple[int, ...]]]

SERVE = [sys.executable, "-m", "bigcrawl_simweb", "serve"]
READY = re.compile(r"simweb ready: port=(\d+) seeds=(\d+) seed=(\d+)\n")
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
    with socket.socket() as free:  # also while no server has it
        port = bind_lasting(free, "")
    process, first = start(*options, "--port", str(port), "--seed", "9", "--hosts", "2", "--pages-per-host", "8")
    main(["seeds", "--state", str(state)])
    seeds = capsys.readouterr().out.split()
    assert seeds == [f"http://127.16.0.{host}:{first[0]}/" for host in (1, 2)]
    Crawler("bigcrawl").crawl(seeds)
    # Answered after everything else, and so after everything else was logged.
    with urllib.request.urlopen(seeds[1] + "robots.txt"):
        process.kill()
    process.wait()
    before = list(read_exchanges(log))
    expected = load_web(state).web().reachable(first[0], seeds)  # type: ignore[union-attr]
    assert check_exchanges(before, CheckRules(expected=expected, port=first[0])).ok

    process, second = start(*options, "--port", "0")
    assert second == first == (first[0], 2, 9)
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
        save_web(tmp_path, SavedWeb(5, 3, 9, "bigcrawl", port))
        message = refusal(capsys, "serve", "--state", str(tmp_path))
    assert re.search(rf"port {port} of .* cannot be used: .*; stop what uses it", message)


@pytest.mark.parametrize(
    ("option", "value"),
    [("--seed", "6"), ("--hosts", "4"), ("--pages-per-host", "8"), ("--agent", "x"), ("--port", "99")],
)
def test_kept_web_cannot_be_made_another(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str):
    """Asking a directory for another web than it keeps is an error that names both values."""
    save_web(tmp_path, SAVED)
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
    save_web(tmp_path, SAVED)
    web, delays = SAVED.web(), SAVED.web().crawl_delays_ms()
    expected = web.reachable(SAVED.port, web.seeds(SAVED.port))
    clocks = dict.fromkeys(web.addresses(), 0)
    lines = []
    for host in clocks:
        targets = [("/robots.txt", 200)]
        origin = f"http://{host}:{SAVED.port}"
        targets += [(url.removeprefix(origin), status) for url, status in expected.items() if url.startswith(origin)]
        for target, status in targets:
            lines.append(LogLine(clocks[host], clocks[host] + 5, "-", host, host, "GET", target, status, 1))
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
    twice = LogLine(late, late, "-", "127.16.0.1", "127.16.0.1", "GET", "/", 200, 1)
    assert status_of([*lines, twice]) == 1
    private = LogLine(late, late, "-", "127.16.0.2", "127.16.0.2", "GET", "/private/item-0.html", 200, 1)
    assert status_of([*lines, private]) == 1
    assert "forbidden by robots.txt: 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--hosts", "0"), "hosts is 0; must be between 1 and"),
        (("--pages", "5", "--pages-per-host", "5"), "give either pages or pages per host"),
        (("--pages", "39"), "pages is 39; must be between hosts, 40"),
        (("--features", "robots,nonsense"), "feature is 'nonsense'; must be plain, all, or some of robots"),
        (("--shape", "uniform", "--pages", "9"), "shape is uniform, which takes only hosts, port, seed, shape"),
        (
            ("--shape", "topical", "--features", "all"),
            "topical, which takes only hosts, pages_per_host, port, seed, shape",
        ),
        (("--shape", "topical", "--hosts", "3"), "hosts is 3; must be between 20, one for each topic, and"),
        (("--dns", "127.0.0.1"), "--dns is '127.0.0.1'; must be ADDRESS:PORT"),
        (("--processes", "0"), "processes is 0; must be at least 1"),
    ],
)
def test_bad_arguments_are_one_clear_line(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str):
    """What cannot be served is said with its value and its bound; the status is 2."""
    assert message in refusal(capsys, "serve", *arguments)


def test_web_of_all_features_is_kept_and_served(start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Total pages, names and features come back from the state directory; a name is asked for by its Host header."""
    options = ("--hosts", "30", "--pages", "300", "--naming", "name", "--features", "copies,charsets,robots")
    process, (port, *_) = start("--state", str(tmp_path), *options)
    saved = load_web(tmp_path)
    assert saved == SavedWeb(7, 30, 0, "bigcrawl", port, 300, "web", "name", "charsets,copies,robots")
    web = saved.web()
    main(["seeds", "--state", str(tmp_path)])
    seeds = capsys.readouterr().out.split()
    assert seeds == web.seeds(port)
    name = seeds[0][7:].partition(":")[0]
    request = urllib.request.Request(f"http://{web.address_of(name)}:{port}/", headers={"Host": name})
    with urllib.request.urlopen(request) as answer:
        assert answer.read() == web.answer(name, "/", port).body
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.16.0.1/", ("resource   page 0", "robots.txt: absent", "allows it", "answer     200")),
        ("http://127.16.0.2:81/private/item-0.html", ("resource   private 0", "forbids it")),
        ("http://127.16.0.1/calendar/2026/11/", ("in a space without end", "not required")),
        ("http://127.16.0.4/", ("outage: down", "answer     503", "not to be received whole (reset)")),
        ("http://127.16.0.1/fair/gone-0.html", ("exhibit of gone", "statuses: a correct crawler never asks again")),
        ("http://127.16.0.1/phantom", ("resource   nothing", "expected   404")),
        ("http://10.0.0.1/", ("is not in this web", "answer     421")),
    ],
)
def test_explain_says_what_a_url_is(capsys: pytest.CaptureFixture[str], url: str, words: tuple[str, ...]):
    """`explain` tells host, resource, rules and answer of any URL, also of one that is not there."""
    assert main(["explain", url, "--hosts", "40", "--features", "all", "--at", "0"]) == 0
    printed = capsys.readouterr().out
    for word in words:
        assert word in printed


def test_list_names_everything_that_features_add(capsys: pytest.CaptureFixture[str]):
    """`list` has a line for each row of each table."""
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(EXHIBITS) + len(ROBOTS) + len(KINDS) + len(OUTAGES) + len(SPACES)
    assert any("/fair/gzip-bomb-0.html" in line for line in lines)


def test_uniform_web_is_served_and_has_no_known_answer(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Its seeds are a page a host, its menus more; `check` says why it cannot."""
    process, (port, *_) = start("--state", str(tmp_path), "--shape", "uniform", "--hosts", "3")
    main(["seeds", "--state", str(tmp_path), "--menus"])
    menus = capsys.readouterr().out.split()
    assert menus[:3] == UniformWeb(7, 3).seeds(port)
    assert len(set(menus)) == 3 * 44
    with urllib.request.urlopen(menus[-1]) as answer:
        assert len(answer.read()) == PAGE_BYTES
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    assert "shape uniform has no known answer" in refusal(capsys, "check", "--state", str(tmp_path), "--log", "x")


def test_state_is_read_as_it_was_written(tmp_path: Path):
    """A directory without a web gives None; one with a web gives its arguments; no temporary file stays."""
    directory = tmp_path / "new" / "state"
    assert load_web(directory) is None
    save_web(directory, SAVED)
    assert load_web(directory) == SAVED
    assert [path.name for path in directory.iterdir()] == ["simweb.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 2, "seed": 1}', '{"format": 2, "seed": "x"}'])
def test_damaged_state_is_an_error_not_a_fresh_start(tmp_path: Path, text: str):
    """A file that `save` did not write is never taken for none."""
    (tmp_path / "simweb.json").write_text(text)
    with pytest.raises(CorruptionError, match=r"simweb\.json: damaged"):
        load_web(tmp_path)


def test_state_of_another_format_is_refused(tmp_path: Path):
    """A later version's file is not guessed at."""
    save_web(tmp_path, SAVED)
    fields = json.loads((tmp_path / "simweb.json").read_text())
    (tmp_path / "simweb.json").write_text(json.dumps({**fields, "format": 3}))
    with pytest.raises(ConfigError, match="another format than 2"):
        load_web(tmp_path)
