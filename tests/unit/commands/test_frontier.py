"""`scrapy frontier status`: read from outside, of a crawl that runs, stands or does not exist."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.cmdline import execute
from scrapy.settings import Settings

from bigcrawl.commands.actions import ACTIONS
from bigcrawl.commands.looking.status import paint_status, status_text
from bigcrawl.commands.result import wants_colour
from bigcrawl.commands.running import parser_of
from bigcrawl.exceptions import ConfigError
from bigcrawl.views.status import status_of
from tests.support.running.tables import each
from tests.unit.scheduler.world import make_config, queued, viewed, world

if TYPE_CHECKING:
    from pathlib import Path

# What takes a command the longest to import, and no other than ours needs.
PAGES = [f"http://h{i}.example/" for i in range(5)]


async def status_of_a_living_crawl(tmp_path: Path, crawl_name: str, redis_url: str) -> dict[str, Any]:
    """Two pages fetched, one taken, two waiting."""
    async with world(tmp_path, crawl_name, redis_url) as w:
        node = await w.joined()
        for url in queued(*PAGES[:3]):
            node.offer(url)
        for i, held in enumerate(await w.take(node)):
            if i < 2:
                held.fetched_bytes = 500
                w.end(node, held, f"status:{200 + 204 * i}")
        node.pump.wake()  # as an engine does that has nothing to do: two ends alone would wait for more
        await node.pump.turn()
        for url in queued(*PAGES[3:]):
            node.offer(url)
        await node.pump.flush()
        w.clock.advance(2_000)  # a node with little to do reports every other second
        await node.beat.turn()
        return await viewed(w.config, status_of)


def test_status_tells_nodes_partitions_hosts_urls_pages_and_rates(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Everything that is asked for, from Redis alone, while the node goes on."""
    status = asyncio.run(status_of_a_living_crawl(tmp_path, crawl_name, redis_url))
    assert status["crawl"] == crawl_name
    assert not status["finished"]
    assert status["partitions"] == {"all": 4, "owned": 4, "damaged": 0, "missing": 0, "begun_anew": 0}
    urls = {"inbox": 2, "disk": 0, "queued": 0, "taken": 1, "ended": 2, "withheld": 0, "unrunnable": 0, "seen": 3}
    assert status["urls"] == urls | dict.fromkeys(("damaged", "lost", "dead", "missing", "may_refetch", "uncounted"), 0)
    assert status["hosts"] == {"ready": 0, "waiting": 0, "busy": 1, "snoozed": 0, "retired": 0}
    assert (status["pages"], status["bytes"]) == (2, 1_000)
    assert status["outcomes"] == {"status:200": 1, "status:404": 1}
    [node] = status["nodes"].values()
    assert (node["partitions"], node["held"]) == (4, 1)
    assert node["pages_per_s"] > 0
    assert status["pages_per_s"] == node["pages_per_s"]
    assert status["sizes"]["seen"] == 8 * status["urls"]["seen"]
    json.dumps(status)


def test_status_for_a_person_holds_the_same_numbers(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The text names every figure of the JSON that a person asks for."""
    status = asyncio.run(status_of_a_living_crawl(tmp_path, crawl_name, redis_url))
    text = status_text(status)
    assert max(map(len, text.splitlines())) <= 80
    for expected in (
        f"crawl {crawl_name}",
        "2 in all",
        "0.0 MB",
        "1 busy",
        "2 in inbox",
        "1 taken",
        "4 of 4",
        "status:404",
        "sizes       URLSeen 0.0 MB, queues 0.0 MB, other tables 0.0 MB",
    ):
        assert expected in text
    assert "finished" not in text
    assert "finished" in status_text({**status, "finished": True})
    assert "damaged" not in text
    assert "lost" not in text
    status["partitions"]["damaged"] = 2
    status["urls"] |= {"damaged": 31, "lost": 45}
    assert "2 partitions, where 31 URLs wait" in status_text(status)
    assert "45 URLs by a Redis that forgot" in status_text(status)


def test_status_says_whose_crawl_it_is_in_lines_of_80_columns(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """However long its seeds are; and what was made, with what is wrong in another colour."""
    status = asyncio.run(status_of_a_living_crawl(tmp_path, crawl_name, redis_url))
    seeds = [f"http://a{number}.example/{'x' * 30}" for number in range(5)]
    status |= {"spider": "broad", "since_s": 1_764_482_400.0, "seeds": seeds, "scope": "pld", "contact": "me@a.example"}
    status |= {"items": 7, "log": {"warnings": 2, "errors": 1}, "possible_per_s": 5.5, "possible_by": "the speed set"}
    text = status_text(status)
    assert max(map(len, text.splitlines())) <= 80
    for expected in (
        "spider      broad, since 2025-11-30 06:00:00Z",
        "scope       pld",
        "contact     me@a.example",
        "items                   7 in all",
        "log         2 warnings, 1 errors: see scrapy frontier recent",
        "possible    5.5 pages a second at most now, by the speed set",
    ):
        assert f"\n{expected}" in text
    assert all(seed in text for seed in seeds)
    coloured = paint_status(text)
    assert re.sub(r"\x1b\[\d+m", "", coloured) == text
    assert "\x1b[33mlog" in coloured
    assert "\x1b[1mspider" in coloured


def test_colour_is_for_terminals_whose_users_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert not wants_colour(), "the output is no terminal"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert wants_colour()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour()
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour()


def test_unknown_crawl_is_told(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A Redis without the crawl: which name was asked for, and which setting to look at."""
    with pytest.raises(ConfigError, match=f"no crawl '{crawl_name}'; .* there is none; see BIGCRAWL_CRAWL"):
        asyncio.run(viewed(make_config(tmp_path, crawl_name, redis_url), status_of))


def run_command(settings: dict[str, Any], *words: str) -> int:
    """`scrapy frontier WORDS`, in this process; the exit status."""
    with pytest.raises(SystemExit) as ended:
        execute(["scrapy", "frontier", *words], Settings(settings))
    status = ended.value.code
    assert isinstance(status, int)
    return status


def test_wrong_setting_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The command checks the settings as the crawl does."""
    assert run_command({"BIGCRAWL_PARTITIONS": "many"}, "status") == 1
    assert "BIGCRAWL_PARTITIONS" in capsys.readouterr().err


def test_json_is_one_object(
    tmp_path: Path, crawl_name: str, redis_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--json` prints what a program can read, and nothing else."""
    asyncio.run(status_of_a_living_crawl(tmp_path, crawl_name, redis_url))
    settings = {
        "BIGCRAWL_CRAWL": crawl_name,
        "BIGCRAWL_STATE_DIR": str(tmp_path),
        "BIGCRAWL_REDIS_URL": redis_url,
    }
    assert run_command(settings, "status", "--json") == 0
    assert json.loads(capsys.readouterr().out)["crawl"] == crawl_name


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ((), ("status, ", ", explain, ", "scrapy frontier -h")),
        (("fly",), ("no action 'fly'; `scrapy frontier -h`",)),
        (("awakn", "--all"), ("no action 'awakn'; did you mean awaken?",)),
        (("status", "more"), ("wants nothing behind it", "scrapy frontier status -h")),
        (("status", "--unset"), ("--unset", "scrapy frontier status -h")),
        (("explain",), ("explain wants URL", "scrapy frontier explain -h")),
        (("budget", "a.example", "--urls", "few"), ("--urls", "'few'", "scrapy frontier budget -h")),
        (("awaken", "--al"), ("--al", "scrapy frontier awaken -h")),
        (("dead", "--retry", "--drop"), ("--drop: not allowed with argument --retry", "scrapy frontier dead -h")),
    ],
)
def test_command_line_that_cannot_be_read_is_told_in_one_line(
    words: tuple[str, ...], parts: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong, what would be right, exit status 2."""
    assert run_command({}, *words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    for part in parts:
        assert part in said.err


@each("name", ACTIONS)
def test_examples_of_the_help_can_be_read(name: str) -> None:
    """The parser that shows an example takes it."""
    for words in ACTIONS[name].examples:
        found = parser_of(name).parse_intermixed_args(shlex.split(words))
        assert ACTIONS[name].least <= len(found.words) <= ACTIONS[name].most


def test_reader_may_have_enough(tmp_path: Path) -> None:
    """As `head`: the rest is not printed, and nothing is said of it."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = bigcrawl.settings\n")
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-m", "scrapy", "frontier", "-h"]
    with os.fdopen(writes, "wb") as pipe:
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, cwd=tmp_path, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_commands_of_scrapys_own_do_not_pay_for_ours() -> None:
    """`scrapy version`, anywhere: the command is found to be listed, and nothing that it would need to run."""
    program = (
        "import bigcrawl.commands.frontier, sys; print(*(name for name in sys.modules if name.startswith('bigcrawl')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"bigcrawl", "bigcrawl.commands", "bigcrawl.commands.frontier"} >= set(done.stdout.split())
