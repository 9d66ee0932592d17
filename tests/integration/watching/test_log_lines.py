"""The log of a real crawl of hosts that fail: as JSON, and without ERRORs."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.hosts.test_backoff import Answer, serving
from tests.support.crawling.crawls import Crawl, SimulatedWeb

if TYPE_CHECKING:
    from pathlib import Path


TIMEOUT_S = 10  # a busy machine answers sooner


def log_of(path: Path) -> list[dict[str, Any]]:
    """Every line is an object; what is not fails here."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def bad_answer(path: str) -> Answer:
    """A page that is busy, one that is broken, and one that takes too long; all else is well."""
    if path == "/slow":
        time.sleep(3 * TIMEOUT_S)
    return {"/busy": (503, {}), "/broken": (500, {})}.get(path, (200, {}))


@pytest.mark.long("all lines of a crawl, beside Scrapy's: tests/unit/extensions")
def test_each_line_is_an_object_and_expected_answers_are_no_errors(tmp_path: Path) -> None:
    """From the first line to the last, Scrapy's too; nothing that a page or a host may do raises an alarm.

    Bodies that break are among the pages of the crawls in `test_terminal`.
    """
    settings = {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_DELAY": 0.2, "LOG_FORMAT": "json", "BIGCRAWL_BACKOFF": 0.5}
    settings |= {"BIGCRAWL_BACKOFF_MAX": 1, "BIGCRAWL_LAST_FAILURES_MAX": 2, "BIGCRAWL_HOST_FAILURES_MAX": 3}
    settings |= {"DOWNLOAD_TIMEOUT": TIMEOUT_S, "RETRY_TIMES": 1}
    with SimulatedWeb(tmp_path / "web", hosts=3, pages=12) as web, serving("127.0.62.9", bad_answer) as bad:
        seeds = [*web.seeds, "http://127.88.0.1:9/nobody/listens", f"{web.seeds[0]}no/such/page"]
        seeds += bad.urls("/good", "/busy", "/broken", "/slow")
        with Crawl(tmp_path / "crawl", seeds, settings) as crawl:
            assert crawl.run() == 0
            lines = log_of(crawl.log)
            assert "Scrapy" in lines[0]["message"]
            assert "started (bot: bigcrawl)" in lines[0]["message"]
            messages = [line["message"] for line in lines]
            assert "Spider closed (finished)" in messages
            assert any("crawl test: finished" in message for message in messages), "the summary is a line, too"
            assert {line["logger"].partition(".")[0] for line in lines} >= {"scrapy", "bigcrawl"}
            assert all(datetime.fromisoformat(line["time"]).utcoffset() == timedelta(0) for line in lines)
            [last] = [line for line in lines if line["message"].startswith("Spider closed")]
            assert (last["crawl"], last["spider"]) == ("test", "broad")
            assert last["node"]
            assert [line for line in lines if line["level"] in ("ERROR", "CRITICAL") or "exc" in line] == []
            ended = {reason["reason"] for reason in crawl.asked("errors")["errors"]}
            assert ended >= {"status:503", "status:500", "status:404", "error:timeout", "robots.txt error:refused"}

            log = tmp_path / "log.jsonl"
            crawl.start(LOG_FILE=log)
            assert crawl.wait(300) == 0
            assert crawl.log.read_text() == "", "nothing is written elsewhere"
            assert any("is finished" in line["message"] for line in log_of(log))
            assert "crawl test" in crawl.frontier("status").stdout, "commands have no log"
