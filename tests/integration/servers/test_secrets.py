"""No secret of an operator's is told: planted passwords, cookies and keys are looked for in all that a crawl says."""

from __future__ import annotations

import json
import re
import urllib.request
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.integration.watching.test_dashboard import QUESTIONS, ask, port_in
from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long("every command and every page of a crawl; test_metrics looks for secrets, too")

SECRETS = {
    "redis": "s3cret-redis",
    "wrong": "s3cret-redis-old",
    "proxy": "s3cret-proxy",
    "cookie": "s3cret-cookie",
    "token": "s3cret-token",
    "store": "s3cret-store",
    "dashboard": "s3cret-dashboard",
}
DEAF = "127.88.0.1:9"
BROKEN = '''
from scrapy import signals


class Broken:
    """A project's handler that fails, so that tracebacks are logged."""

    def __init__(self, crawler):
        crawler.signals.connect(self.fail, signals.response_received)

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    def fail(self, request):
        raise ValueError(f"cannot handle {request}")
'''


PLAIN: list[str] = []
JSON = ["--json"]


def _asked_all(crawl: Crawl, url: str, *forms: list[str]) -> str:
    """What each command that looks says, in these forms; an error has one for people and for programs."""
    host = url.split("/")[2].partition(":")[0]
    said = []
    for words in (
        ["status"],
        ["top", "--once"],
        ["history"],
        ["nodes"],
        ["hosts"],
        ["host", host],
        ["plds"],
        ["pld", host],
        ["errors"],
        ["report", str(crawl.directory / "report")],
        ["verify"],
        ["rejected"],
        ["dead"],
        ["explain", url],
        ["explain", f"http://{DEAF}/"],
        ["blacklist", "list"],
        ["speed"],
        ["delay", host],
        ["budget", host],
        ["add", "http://"],
        ["export", "/no/such/directory/file.jsonl"],
        ["import", "/no/such/file.jsonl"],
    ):
        for form in forms:
            done = crawl.frontier(*words, *form, check=False)
            said += [done.stdout, done.stderr]
    said += [path.read_text() for path in (crawl.directory / "report").glob("*")]
    return "\n".join(said)


def _served(crawl: Crawl, url: str) -> str:
    """What the dashboard answers to each question, and to a change without the token; and the metrics."""
    host = url.split("/")[2].partition(":")[0]
    dashboard, metrics = port_in(crawl.log), re.search(r"metrics: (http://\S+)", crawl.log.read_text())
    assert metrics is not None
    said = [json.dumps(ask(dashboard, question.format(host=host))) for question in QUESTIONS]
    said.append(json.dumps(ask(dashboard, "pause", {}, token="wrong")))  # noqa: S106 - of this test
    with urllib.request.urlopen(metrics[1], timeout=60) as answer:
        said.append(answer.read().decode())
    return "\n".join(said)


def _told(texts: dict[str, str]) -> list[str]:
    return [f"{secret} in {where}" for where, text in texts.items() for secret in SECRETS.values() if secret in text]


def test_no_secret_is_told(tmp_path: Path) -> None:
    """While the crawl runs, while its Redis is away, with a wrong password, and by the stopped crawl."""
    texts: dict[str, str] = {}
    users = tmp_path / "users.acl"
    users.write_text(f"user default on nopass ~* &* +@all\nuser crawler on >{SECRETS['redis']} ~* &* +@all\n")
    with (
        PrivateRedis(options={"aclfile": str(users)}) as server,
        SimulatedWeb(tmp_path / "web", hosts=4, pages=20) as web,
    ):
        url = server.url.replace("unix://", f"unix://crawler:{SECRETS['redis']}@")
        (tmp_path / "broken.py").write_text(BROKEN)
        settings = {
            "BIGCRAWL_REDIS_URL": url,
            "BIGCRAWL_PARTITIONS": 4,
            "BIGCRAWL_HOST_DELAY": 0.2,
            "BIGCRAWL_CLOSE": "forever",
            "DEFAULT_REQUEST_HEADERS": json.dumps(
                {"Cookie": f"session={SECRETS['cookie']}", "Authorization": f"Bearer {SECRETS['token']}"}
            ),
            "EXTENSIONS": json.dumps({"broken.Broken": 900}),
            "LOG_LEVEL": "DEBUG",
            "BIGCRAWL_DASHBOARD": 1,
            "BIGCRAWL_DASHBOARD_PORT": 0,
            "BIGCRAWL_DASHBOARD_TOKEN": SECRETS["dashboard"],
            "BIGCRAWL_METRICS": 1,
            "BIGCRAWL_METRICS_PORT": 0,
        }
        environment = {
            "http_proxy": f"http://user:{SECRETS['proxy']}@127.0.0.1:9",
            "no_proxy": ",".join({re.split("[/:]+", seed)[1] for seed in web.seeds}),
            "AWS_SECRET_ACCESS_KEY": SECRETS["store"],
            "PYTHONPATH": str(tmp_path),
        }
        seeds = [*web.seeds, f"http://{DEAF}/"]
        with Crawl(tmp_path / "crawl", seeds, settings, environment=environment) as crawl:
            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 20, "pages are fetched")
            texts["commands"] = _asked_all(crawl, web.seeds[0], PLAIN, JSON)
            texts["pages"] = _served(crawl, web.seeds[0])
            server.kill()
            wait_until(lambda: "Redis does not answer" in crawl.log.read_text(), "the node misses its Redis")
            texts["commands without Redis"] = _asked_all(crawl, web.seeds[0], PLAIN)
            texts["pages without Redis"] = _served(crawl, web.seeds[0])
            server.restart()
            wait_until(lambda: crawl.frontier("status", check=False).returncode == 0, "Redis is back")
            crawl.terminate()
            assert crawl.wait(300) == 0
            texts["log"] = crawl.log.read_text()
            as_json = replace(crawl, directory=tmp_path / "json", name="json", process=None)
            with as_json:
                as_json.start(LOG_FORMAT="json")
                wait_until(lambda: "cannot handle <GET" in as_json.log.read_text(), "a page is fetched")
                as_json.terminate()
                assert as_json.wait(300) == 0
            texts["log as JSON"] = as_json.log.read_text()
            other = second_process_of(crawl, "wrong")
            other.settings["BIGCRAWL_REDIS_URL"] = url.replace(SECRETS["redis"], SECRETS["wrong"])
            assert other.run() != 0
            texts["log with a wrong password"] = other.log.read_text()
            texts["commands with a wrong password"] = _asked_all(other, web.seeds[0], PLAIN)
    assert not _told(texts)
    assert "cannot handle <GET" in texts["log"]
    assert texts["log as JSON"].startswith("{")
    assert DEAF in texts["commands"]
    assert "<!doctype html>" in texts["commands"].lower(), "the report is among them"
    assert "bigcrawl_owned_seen_urls" in texts["pages"]
    assert "standstill" in texts["pages"]
    assert "Redis does not answer" in texts["pages without Redis"]
