"""Every action of `scrapy frontier`, on a live crawl: as it is meant, for programs, and with wrong words.

A new action needs a row in `CALLS` and in `WRONG`. What actions do is tested by others; here is what an operator meets
who tries each of them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from bigcrawl.commands.actions import ACTIONS
from bigcrawl.redisdb.keys import CrawlKeys
from tests.integration.watching.test_dashboard import ask, port_in
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running import warm
from tests.support.running.processes import wait_until
from tests.unit.stored.warc_files import page, stored

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS: Final = {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_DELAY": 0.5, "BIGCRAWL_CLOSE": "forever"}
ELSEWHERE: Final = ("import", "delete")  # of another crawl, which the export becomes


class Called(NamedTuple):
    """A call that is right, and a field of what it prints for programs."""

    words: tuple[str, ...]
    field: str


class Refused(NamedTuple):
    """A call that is wrong, its exit status, and a part of its line: the remedy."""

    words: tuple[str, ...]
    status: int
    remedy: str


# In this order. `{url}`, `{host}`, `{node}` and `{dir}` are of the crawl.
CALLS: Final = {
    "status": Called((), "standstill"),
    "top": Called(("--once",), "status"),
    "history": Called(("--rows", "3"), "time_s"),
    "recent": Called((), "fetches"),
    "events": Called((), "events"),
    "crawls": Called((), "crawls"),
    "jobs": Called((), "jobs"),
    "nodes": Called((), "nodes"),
    "hosts": Called(("--state", "waiting"), "hosts"),
    "host": Called(("{host}",), "next_urls"),
    "plds": Called(("--limit", "5"), "plds"),
    "pld": Called(("{host}",), "budget"),
    "errors": Called(("--reason", "404"), "errors"),
    "report": Called(("{dir}/report",), "files"),
    "estimate": Called((), "walks"),
    "verify": Called((), "damaged"),
    "warc": Called(("verify",), "records"),
    "graph": Called(("{dir}/graphs", "-s", "BIGCRAWL_SOURCE={dir}/crawl/warc/*.open"), "graphs"),
    "wacz": Called(("{dir}/stored.wacz", "-s", "BIGCRAWL_SOURCE={dir}/stored"), "captures"),
    "repair": Called(("--yes",), "repaired"),
    "explain": Called(("{url}",), "outcome"),
    "add": Called(("{url}by/hand", "--priority", "5"), "sent"),
    "forget": Called(("{url}by/hand",), "forgotten"),
    "retry": Called(("{url}",), "again"),
    "awaken": Called(("--all",), "awakened"),
    "rejected": Called((), "rejected"),
    "dead": Called((), "dead"),
    "budget": Called(("{host}", "--urls", "100"), "rule_by_hand"),
    "blacklist": Called(("add", "spam.example"), "added"),
    "delay": Called(("{host}", "--delay", "1"), "delay"),
    "export": Called(("{dir}/crawl.jsonl.zst",), "file"),
    "copies": Called(("{dir}/copies.jsonl",), "exact"),
    "changes": Called(("{dir}/changes.jsonl",), "file"),
    "import": Called(("{dir}/crawl.jsonl.zst",), "from"),
    "delete": Called(("moved", "--yes"), "crawl"),
    "pause": Called((), "changed"),
    "resume": Called((), "changed"),
    "discovery": Called(("off",), "is_on"),
    "checkpoint": Called((), "missing"),
    "speed": Called(("100/s",), "by_hand"),
    "drain": Called(("{node}",), "drained"),
}
SERVES: Final = "dashboard"  # until it is told to end, so it has a test of its own

WRONG: Final = {
    "status": Refused(("now",), 2, "status wants nothing behind it"),
    "top": Refused(("--every", "often"), 2, "--every"),
    "history": Refused(("--rows", "many"), 2, "--rows"),
    "dashboard": Refused(("9430",), 2, "dashboard wants nothing behind it"),
    "recent": Refused(("now",), 2, "recent wants nothing behind it"),
    "events": Refused(("now",), 2, "events wants nothing behind it"),
    "crawls": Refused(("here",), 2, "crawls wants nothing behind it"),
    "jobs": Refused(("-s", "BIGCRAWL_DASHBOARD_SCRAPYD=scrapyd"), 1, "http://127.0.0.1:6800"),
    "nodes": Refused(("node1",), 2, "nodes wants nothing behind it"),
    "hosts": Refused(("--state", "tired"), 2, "snoozed"),
    "host": Refused(("http://",), 1, "http"),
    "plds": Refused(("--sort", "size"), 2, "bytes"),
    "pld": Refused((), 2, "pld wants PLD"),
    "errors": Refused(("--limit", "few"), 2, "--limit"),
    "report": Refused(("/dev/null/report",), 1, "/dev/null/report"),
    "warc": Refused(("purge",), 1, "verify [FILE...]"),
    "graph": Refused(("/dev/null/graphs", "-s", "BIGCRAWL_SOURCE=nowhere"), 1, "name WARC files"),
    "estimate": Refused(("now",), 2, "estimate wants nothing behind it"),
    "wacz": Refused(("/dev/null/crawl.wacz",), 1, "such as crawl.wacz"),
    "verify": Refused(("now",), 2, "verify wants nothing behind it"),
    "repair": Refused(("p0001",), 2, "repair wants nothing behind it"),
    "explain": Refused(("a.example/page",), 1, "http://"),
    "add": Refused(("no/such/file.txt",), 1, "no/such/file.txt"),
    "forget": Refused(("a.example/page",), 1, "http://"),
    "retry": Refused(("ftp://a.example/",), 1, "http"),
    "awaken": Refused((), 1, "--all"),
    "rejected": Refused(("all",), 2, "rejected wants nothing behind it"),
    "dead": Refused(("--retry",), 1, "--all"),
    "budget": Refused(("a.example", "--urls", "-1"), 1, "0"),
    "blacklist": Refused(("add", "re:("), 1, "re:("),
    "delay": Refused(("a.example", "--delay", "-1"), 1, "0"),
    "copies": Refused((), 2, "copies wants FILE"),
    "changes": Refused(("changes.jsonl", "--since", "soon"), 1, "must be a time such as"),
    "export": Refused(("/no/such/directory/file.jsonl",), 1, "a directory that exists"),
    "import": Refused(("/no/such/file.jsonl",), 1, "`scrapy frontier export`"),
    "delete": Refused(("test", "--yes"), 1, "stop its nodes"),
    "pause": Refused(("no host",), 1, "scrapy frontier pause has 'no host'"),
    "resume": Refused(("no host",), 1, "scrapy frontier resume has 'no host'"),
    "drain": Refused(("node9",), 1, "there are: "),
    "discovery": Refused(("maybe",), 1, "off"),
    "checkpoint": Refused(("--timeout", "soon"), 2, "--timeout"),
    "speed": Refused(("fast",), 1, "80/s"),
}


def test_every_action_has_a_row() -> None:
    """One that is added must be tried here, rightly and wrongly."""
    assert set(CALLS) | {SERVES} == set(ACTIONS) == set(WRONG)


@pytest.mark.long("a process for each of all commands, twice; each has tests of its own")
def test_every_action_works_on_a_live_crawl_and_refuses_wrong_words(tmp_path: Path) -> None:
    """A right call exits with 0 and prints one JSON object; a wrong one prints one line, and sets nothing."""
    with (
        SimulatedWeb(tmp_path / "web", hosts=4, pages=200) as web,
        Crawl(tmp_path / "crawl", web.seeds, SETTINGS) as crawl,
    ):
        crawl.start()
        wait_until(lambda: len(web.exchanges()) > 10, "pages are fetched")
        for name, wrong in WRONG.items():
            refuse(crawl, name, wrong)
        keys = CrawlKeys(crawl.name)
        with crawl.redis() as client:
            assert not client.exists(keys.control, keys.rules, keys.delays, keys.blacklist)
        ask_the_dashboard(crawl, tmp_path / "said.txt")
        wait_until(lambda: crawl.asked("plds")["plds"] != [], "the node has sent its counts")
        host, [node] = web.seeds[0].split("/")[2].partition(":")[0], crawl.asked("nodes")["nodes"]
        places = {"url": web.seeds[0], "host": host, "node": node["node"], "dir": str(tmp_path)}
        stored(tmp_path / "stored", page(web.seeds[0]))
        for name, call in CALLS.items():
            of = replace(crawl, name="moved") if name in ELSEWHERE else crawl
            done = of.frontier(name, *(word.format(**places) for word in call.words), "--json")
            assert call.field in set(json.loads(done.stdout)), name
            assert done.stderr == "", name
        assert crawl.wait(300) == 0, "it is drained"
        assert "Traceback" not in crawl.log.read_text()


def refuse(crawl: Crawl, name: str, wrong: Refused) -> None:
    """Make a wrong call, which must be one line."""
    done = crawl.frontier(name, *wrong.words, check=False)
    assert (done.returncode, done.stdout) == (wrong.status, ""), (name, done)
    assert done.stderr.startswith("bigcrawl: "), (name, done)
    assert done.stderr.count("\n") == 1, (name, done)
    assert wrong.remedy in done.stderr, (name, done)


def ask_the_dashboard(crawl: Crawl, said: Path) -> None:
    """Serve the dashboard by the command, ask it for the crawl, and end it."""
    with said.open("wb") as out:
        command = ["scrapy", "frontier", SERVES, *crawl.options(), "-s", "BIGCRAWL_DASHBOARD_PORT=0"]
        process = warm.start(command, stdout=out, stderr=out, env=crawl._environment())
    try:
        status, data = ask(port_in(said), "status")
        assert (status, len(data["nodes"])) == (200, 1)
        process.terminate()
        assert process.wait(300) == 0
    finally:
        process.kill()
