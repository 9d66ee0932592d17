"""The dashboard of a live crawl: every question, a pause and its end, and what listens where."""

from __future__ import annotations

import http.client
import json
import re
import time
from typing import TYPE_CHECKING, Any

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running import warm
from tests.support.running.processes import listening, wait_until

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "s3cret-0123456789"  # noqa: S105 - of this test
LISTENS = re.compile(r"dashboard: http://127\.0\.0\.1:(\d+)/")
QUESTIONS = {
    "status": "pages",
    "nodes": "nodes",
    "recent": "fetches",
    "events": "events",
    "crawls": "crawls",
    "jobs": "jobs",
    "history": "time_s",
    "disks": "disks",
    "hosts?limit=5": "hosts",
    "errors": "errors",
    "host?word={host}": "next_urls",
    "plds?limit=5": "plds",
    "pld?word={host}": "budget",
    "explain?word=http://{host}/": "outcome",
    "budget?word={host}": "policy",
    "delay?word={host}": "delay",
    "speed": "now",
    "blacklist": "entries",
    "estimate": "walks",
}


def settings_of(**more: object) -> dict[str, object]:
    return {
        "BIGCRAWL_DASHBOARD": 1,
        "BIGCRAWL_DASHBOARD_PORT": 0,
        "BIGCRAWL_DASHBOARD_TOKEN": TOKEN,
        "BIGCRAWL_PARTITIONS": 4,
        "BIGCRAWL_HOST_DELAY": 0.2,
        "BIGCRAWL_CLOSE": "forever",
        **more,
    }


def port_in(log: Path) -> int:
    """Where the dashboard listens."""
    wait_until(lambda: LISTENS.search(log.read_text()) is not None, "the dashboard is served")
    found = LISTENS.search(log.read_text())
    assert found is not None
    return int(found[1])


def ask(port: int, path: str, body: dict[str, Any] | None = None, token: str = TOKEN) -> tuple[int, dict[str, Any]]:
    """Status and JSON of a question, or of a change if there is a body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"Authorization": f"Bearer {token}"} if body is not None else {}
    if body is not None:
        headers |= {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/json"}
    try:
        connection.request("GET" if body is None else "POST", f"/api/{path}", json.dumps(body or {}), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def has_stopped(node: dict[str, Any], paused_s: float) -> bool:
    """Whether a node said seconds after a pause that it fetches nothing; it hears of the pause within one."""
    told_s = time.monotonic() - node["last_heard_s"]
    return told_s > paused_s + 3 and not node["stages"].get("started", 0)


def test_every_question_is_answered_and_a_pause_holds_until_its_end(tmp_path: Path) -> None:
    """Looking needs no token here, changing does; the token is in no log, and only loopback is listened at."""
    with SimulatedWeb(tmp_path / "web", hosts=5, pages=400) as web:
        host = web.seeds[0].split("//")[1].partition(":")[0]
        with Crawl(tmp_path / "crawl", web.seeds, settings_of()) as crawl:
            crawl.start()
            port = port_in(crawl.log)
            assert crawl.process is not None
            assert listening(crawl.process.pid) == {f"0100007F:{port:04X}"}, "127.0.0.1, and no other"
            wait_until(lambda: ask(port, "status")[1]["pages"] > 10, "pages are fetched")
            wait_until(lambda: ask(port, "history")[1]["time_s"] != [], "a sample is taken")
            for question, field in QUESTIONS.items():
                status, data = ask(port, question.format(host=host))
                assert (status, field in data) == (200, True), (question, data)

            assert ask(port, "pause", {}, token="wrong" * 5)[0] == 401
            assert ask(port, "speed")[1]["paused"] == []
            assert ask(port, "pause", {}) == (200, {"changed": ["crawl test"], "unchanged": []})
            assert ask(port, "speed")[1]["paused"] == [""], "no kept answer is given after a change"
            wait_until(lambda: ask(port, "nodes")[1]["nodes"][0]["state"] == "paused", "the pause is known")
            paused_s = time.monotonic()
            wait_until(lambda: has_stopped(ask(port, "nodes")[1]["nodes"][0], paused_s), "nothing is fetched")
            fetched = len(web.exchanges())
            wait_until(
                lambda: any("paused" in why for why in ask(port, "status")[1]["standstill"]), "the pause is told"
            )
            assert len(web.exchanges()) == fetched
            assert ask(port, "resume", {})[0] == 200
            wait_until(lambda: len(web.exchanges()) > fetched + 10, "the crawl goes on")

            assert ask(port, "blacklist", {"words": ["add", "spam.example"]})[1]["added"] == ["spam.example"]
            assert ask(port, "blacklist")[1]["entries"] == {"spam.example": "by hand"}
            assert ask(port, "budget", {"words": [host], "options": {"urls": 7}})[1]["rule_by_hand"] == {"budget": 7}
            assert ask(port, "speed", {"words": ["5/s"]})[1]["by_hand"] == "5/s"
            status, data = ask(port, "speed", {"words": ["fast"]})
            assert status == 400
            assert "fast" in data["error"]
            assert ask(port, "speed?word=0/s")[0] == 400, "a question changes nothing, with and without a token"
            assert ask(port, "speed")[1]["by_hand"] == "5/s"
            status, data = ask(port, "host?word=no%20host")
            assert (status, "\n" in data["error"]) == (400, False)

            crawl.terminate()
            assert crawl.wait(300) == 0
            log = crawl.log.read_text()
            assert TOKEN not in log
            assert "Traceback" not in log


def test_a_stopped_crawl_is_looked_at_by_a_command(tmp_path: Path) -> None:
    """The command starts the crawl's server, and SIGTERM ends both; a crawl that does not exist is one line."""
    with SimulatedWeb(tmp_path / "web", hosts=3, pages=5) as web:
        more = settings_of(BIGCRAWL_DASHBOARD=0, BIGCRAWL_CLOSE=None)
        with Crawl(tmp_path / "crawl", web.seeds, more) as crawl:
            assert crawl.run() == 0
            assert "dashboard:" not in crawl.log.read_text(), "it is off by default"
            environment = crawl._environment()
            said = tmp_path / "said.txt"
            with said.open("wb") as out:
                command = ["scrapy", "frontier", "dashboard", *crawl.options()]
                process = warm.start(command, stdout=out, stderr=out, env=environment)
            try:
                port = port_in(said)
                status = ask(port, "status")[1]
                assert (status["finished"], status["nodes"]) == (True, {})
                assert status["pages"] == len(web.expected())
                assert ask(port, "history")[1]["pages"][-1] == status["pages"]
                crawl.settings["BIGCRAWL_DASHBOARD_PORT"] = port
                taken = crawl.frontier("dashboard", check=False)
                process.terminate()
                assert process.wait(300) == 0
            finally:
                process.kill()
            assert said.read_text().endswith("the dashboard has ended; the crawl continues\n")
            assert taken.returncode == 1
            assert f"BIGCRAWL_DASHBOARD_PORT {port} at 127.0.0.1 cannot be used" in taken.stderr
            crawl.name = "other"
            none = crawl.frontier("dashboard", check=False)
            assert (none.returncode, none.stderr.count("\n")) == (1, 1)
            assert "there is no crawl 'other'" in none.stderr


def test_an_open_address_without_a_token_stops_the_start(tmp_path: Path) -> None:
    """One line says what is missing, and nothing listens."""
    more = settings_of(BIGCRAWL_DASHBOARD_ADDRESS="0.0.0.0", BIGCRAWL_DASHBOARD_TOKEN=None)
    with Crawl(tmp_path / "crawl", ["http://127.88.0.1:9/"], more) as crawl:
        assert crawl.run() == 1
        [line] = [line for line in crawl.log.read_text().splitlines() if "ERROR: " in line]
    assert (
        "BIGCRAWL_DASHBOARD_ADDRESS is 0.0.0.0, which other machines can reach: set BIGCRAWL_DASHBOARD_TOKEN_FILE"
    ) in line
