"""Crawls that visit pages again: conditions, what an unchanged page costs, and that every page has its visits."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from bigcrawl.revisiting.visit import digest_of
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import wait_until
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl_simweb.check.checker import Exchange

SETTINGS = {
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 4,
    "BIGCRAWL_HOST_CONNECTIONS": 4,
    "BIGCRAWL_REVISIT_SECONDS_MIN": 1,
}
VISITS = 3


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedWeb]:
    with SimulatedWeb(tmp_path_factory.mktemp("web"), hosts=4, pages=20, features="validators") as served:
        yield served


@pytest.fixture(scope="module")
def log(web: SimulatedWeb, tmp_path_factory: pytest.TempPathFactory) -> list[Exchange]:
    """The log of the web after a crawl with three visits of each page, two seconds apart."""
    arguments = {"policy": "periodic", "every": "2", "visits": str(VISITS)}
    with Crawl(tmp_path_factory.mktemp("crawl"), web.seeds, SETTINGS, arguments=arguments, spider="recrawl") as crawl:
        assert crawl.run() == 0, crawl.log.read_text()[-4000:]
    return web.exchanges()


def statuses_of(web: SimulatedWeb, log: list[Exchange]) -> dict[str, list[int]]:
    """The statuses of each page's visits, in order, without answers that are tried again."""
    found: dict[str, list[int]] = {}
    for each in sorted(log, key=lambda exchange: exchange.start_ms):
        if each.target != "/robots.txt" and each.status in (200, 304):
            found.setdefault(f"http://{each.host}:{web.saved.port}{each.target}", []).append(each.status)
    return found


def test_every_page_has_its_visits_and_the_crawl_ends(web: SimulatedWeb, log: list[Exchange]) -> None:
    """Each page that was found is visited as often as the setting says, and nothing else is visited twice."""
    visits = {url: len(statuses) for url, statuses in statuses_of(web, log).items()}
    pages = {url for url, status in web.expected().items() if status == 200}
    assert visits == dict.fromkeys(pages, VISITS)


def test_an_unchanged_page_is_sent_once(web: SimulatedWeb, log: list[Exchange]) -> None:
    """A page with a validator is received whole at its first visit only."""
    found = statuses_of(web, log)
    tagged = [url for url, statuses in found.items() if 304 in statuses]
    assert len(tagged) > 40
    assert {tuple(found[url]) for url in tagged} == {(200, 304, 304)}


@pytest.mark.long("a crawl of its own; others here have visits as well")
def test_the_next_visit_of_a_page_is_told_and_why(web: SimulatedWeb, tmp_path: Path) -> None:
    """By `explain`, while the crawl runs and when it is stopped; `status` counts the pages that wait."""
    arguments = {"policy": "change-rate", "every": "5000"}
    pages = {url for url, status in web.expected().items() if status == 200}
    missing = next(url for url, status in web.expected().items() if status == 404)
    with Crawl(tmp_path / "crawl", web.seeds, dict(SETTINGS), arguments=arguments, spider="recrawl") as crawl:
        crawl.start()
        wait_until(lambda: "pages wait for the time" in crawl.log.read_text(), "nothing else is left", timeout_s=300)
        wait_until(lambda: crawl.status()["revisits"]["waiting"] == len(pages), "all pages wait", timeout_s=300)
        assert f"{len(pages)} pages wait for their next visit, 0 overdue" in crawl.frontier("status").stdout
        crawl.settings["BIGCRAWL_REVISIT"] = "change-rate"
        found = crawl.asked("explain", web.seeds[0])
        crawl.terminate()
        assert crawl.wait(300) == 0
        text = crawl.frontier("explain", web.seeds[0]).stdout
        assert crawl.asked("explain", missing)["revisit"] is None
    visit = found["revisit"]
    assert (found["where"], visit["policy"], visit["visits"], visit["comparisons"]) == ("revisit", "change-rate", 1, 0)
    assert 4_000 < visit["due_in_s"] <= 5_000
    assert visit["soonest"] is not None
    assert f"  visits    1 so far; known at {visit['last']}" in text
    assert f"  revisit   due {visit['due']}, in " in text
    assert "by the policy change-rate" in text


NAMES = ("same", "turning", "going", "failing", "moving", "moved")


class Origin:
    """A site whose pages change in ways of their own, and the conditions of each request for one."""

    def __init__(self) -> None:
        self.conditions: dict[str, list[str | None]] = defaultdict(list)
        self.cookies: dict[str, list[str | None]] = defaultdict(list)
        origin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                seen = origin.conditions[self.path]
                seen.append(self.headers["If-None-Match"])
                origin.cookies[self.path].append(self.headers["Cookie"])
                status, headers, body = origin.answer(self.path, len(seen), seen[-1])
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, path: str, visit: int, tag: str | None) -> tuple[int, dict[str, str], bytes]:
        """The answer to the n-th request for a path."""
        html = {"Content-Type": "text/html"}
        match path:
            case "/":
                if tag == '"front"':
                    return 304, {"Set-Cookie": f"visit={visit}; Path=/"}, b""
                links = "".join(f"<a href=/{name}>x</a>" for name in NAMES)
                return 200, {**html, "ETag": '"front"'}, links.encode()
            case "/turning":
                return 200, {**html, "ETag": '"always the same"'}, b"visit %d" % visit
            case "/going" if visit > 1:
                return 404, html, b"gone"
            case "/failing" if visit == 2:
                return 403, html, b"not now"
            case "/moved" if visit > 1:
                return 301, {"Location": "/new"}, b""
            case "/moving" if visit > 1:
                return 302, {"Location": "/elsewhere"}, b""
            case "/moving":
                return 200, {**html, "ETag": '"moving"'}, b"here"
            case "/same" | "/going" | "/failing" | "/elsewhere" | "/moved" | "/new":
                return 200, html, b"as ever"
            case _:
                return 404, html, b"no"


@pytest.fixture
def origin() -> Iterator[Origin]:
    served = Origin()
    with at_work(served.server):
        yield served


def test_what_visits_find_is_told_once(origin: Origin, tmp_path: Path) -> None:
    """Pages are added, change and go; what fails or stays makes no item, and conditions go to their own page only.

    A session that a 304 renews goes with the next requests, though the spider does not see the page.
    """
    feed = tmp_path / "items.jsonl"
    arguments = {"policy": "periodic", "every": "2", "visits": "3", "changes": "1"}
    feeds = json.dumps({str(feed): {"format": "jsonlines"}})
    settings = {**SETTINGS, "FEEDS": feeds, "RETRY_ENABLED": 0, "COOKIES_ENABLED": 1}
    with Crawl(tmp_path / "crawl", [origin.url + "/"], settings, arguments=arguments, spider="recrawl") as crawl:
        assert crawl.run() == 0, crawl.log.read_text()[-4000:]
        log = crawl.log.read_text()
        crawl.frontier("changes", str(tmp_path / "changes.jsonl"))
        status = crawl.asked("status")
    changes = [json.loads(line) for line in (tmp_path / "changes.jsonl").read_text().splitlines()]
    items = [json.loads(line) for line in feed.read_text().splitlines()]
    found = Counter((item["url"].removeprefix(origin.url), item["change"]) for item in items)
    pages = ("/", *(f"/{name}" for name in NAMES), "/elsewhere", "/new")
    later = {("/turning", "changed"): 2, ("/going", "gone"): 1, ("/moved", "gone"): 1}
    assert found == Counter({**{(path, "added"): 1 for path in pages}, **later})
    assert {len(origin.conditions[path]) for path in pages} == {3}
    assert {change["url"]: change["visits"] for change in changes} == {origin.url + path: 3 for path in pages}
    last = {path for path, change in later if change == "gone"}
    assert {change["url"] for change in changes if change["change"] == "gone"} == {origin.url + path for path in last}
    assert (status["finished"], status["urls"]["disk"], status["revisits"]["waiting"]) == (True, 0, 0)
    assert origin.conditions["/"] == [None, '"front"', '"front"']
    assert origin.conditions["/moving"] == [None, '"moving"', '"moving"']
    assert set(origin.conditions["/elsewhere"]) == {None}
    assert origin.cookies["/"] == [None, None, "visit=2"]
    assert " ERROR: " not in log


def replayed(collection: dict[str, str], file: Path) -> dict[str, str]:
    """Apply the lines of a file to a collection of digests by URL."""
    for line in map(json.loads, file.read_text().splitlines()):
        if line["change"] == "gone":
            collection.pop(line["url"], None)
        else:
            collection[line["url"]] = line["digest"]
    return collection


def test_replayed_changes_are_the_site_as_it_is(origin: Origin, tmp_path: Path) -> None:
    """All of them, from an empty collection; and those since a time, from the collection of that time."""
    arguments = {"policy": "periodic", "every": "2"}
    settings = {**SETTINGS, "RETRY_ENABLED": 0}
    first, later, whole = (tmp_path / f"{name}.jsonl" for name in ("first", "later", "whole"))
    with Crawl(tmp_path / "crawl", [origin.url + "/"], settings, arguments=arguments, spider="recrawl") as crawl:
        crawl.start()
        wait_until(lambda: len(origin.conditions["/turning"]) > 1, "a page is visited again")
        told = crawl.asked("changes", str(first))
        wait_until(lambda: len(origin.conditions["/elsewhere"]) > 1, "a page was found at the second visit")
        wait_until(lambda: len(origin.conditions["/turning"]) > 3, "and pages are visited again")
        # What begins a third visit has stored what the second one found.
        wait_until(lambda: all(len(origin.conditions[f"/{name}"]) > 2 for name in (*NAMES, "new")), "so is each")
        crawl.terminate()
        assert crawl.wait(300) == 0
        crawl.frontier("changes", str(whole))
        crawl.frontier("changes", str(later), "--since", told["next_since"])
        assert f"{whole} exists already" in crawl.frontier("changes", str(whole), check=False).stderr
        refused = crawl.frontier("changes", str(tmp_path / "no"), "--since", "yesterday", check=False)
    assert "--since is 'yesterday'; must be a time" in refused.stderr
    bodies = dict.fromkeys(("/same", "/failing", "/elsewhere", "/new"), b"as ever")
    bodies |= {"/moving": b"here", "/": origin.answer("/", 1, None)[2]}
    site = {origin.url + path: digest_of(body).hex() for path, body in bodies.items()}
    # The last visit may have been broken off by the stop.
    visits = len(origin.conditions["/turning"])
    turning = {digest_of(b"visit %d" % visit).hex() for visit in (visits - 1, visits)}
    for collection in (replayed({}, whole), replayed(replayed({}, first), later)):
        assert collection.pop(origin.url + "/turning") in turning
        assert collection == site
