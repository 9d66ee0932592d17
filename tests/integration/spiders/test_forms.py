"""Records behind a form: a real crawl finds them, politely, and goes on after kill -9."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl_forms.selecting import Total
from tests.support.crawling.crawls import Crawl
from tests.support.faults import disk
from tests.support.running.processes import wait_until
from tests.support.servers.searched_site import CHANGING, FORBIDDEN, SearchedSite, new_records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RECORDS = 300
DELAY_S = 0.02
IN_PROCESS_MAX = 4
WIDTH = 2
STOP_S = 120  # ten on a machine that is not busy


def new_crawl(
    directory: Path, site: SearchedSite, redis_url: str, name: str, also: Sequence[str] = (), **arguments: str
) -> Crawl:
    settings: dict[str, Any] = {
        "BIGCRAWL_REDIS_URL": redis_url,
        "BIGCRAWL_HOST_DELAY": DELAY_S,
        "BIGCRAWL_IN_PROCESS_MAX": IN_PROCESS_MAX,
        "BIGCRAWL_WARC_DIR": "",
        "SPIDER_MODULES": "bigcrawl_forms.spider",
        "FEEDS": json.dumps({str(directory / "items.jsonl"): {"format": "jsonlines"}}),
    }
    return Crawl(
        directory,
        [site.url, *also],
        settings,
        name=name,
        spider="forms",
        arguments={"width": str(WIDTH), **arguments},
    )


def items_of(crawl: Crawl) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (crawl.directory / "items.jsonl").read_text().splitlines()]


def searches(site: SearchedSite) -> list[str]:
    return [hit.target for hit in site.hits if hit.path == "/search"]


def assert_is_polite(site: SearchedSite, delay_s: float, *, posts: bool = False) -> None:
    """No forbidden page, no form that changes something, and a rest after each answer."""
    assert {hit.method for hit in site.hits} == ({"GET", "POST"} if posts else {"GET"})
    assert [hit for hit in site.hits if hit.path.startswith(FORBIDDEN) or hit.path in CHANGING] == []
    in_order = sorted(site.hits, key=lambda hit: hit.begin)
    gaps = [later.begin - hit.end for hit, later in pairwise(in_order)]
    assert min(gaps) >= delay_s - 0.012, min(gaps)  # a time of arrival is a tick of the kernel early at most


@pytest.mark.long("the parts of it, in tests/annexes/forms")
def test_records_behind_a_form_are_found_over_a_kill(tmp_path: Path, redis_url: str, crawl_name: str) -> None:
    """No query is asked again but those in flight; the last item says how many records there are."""
    site = SearchedSite(new_records(RECORDS), cap=60)
    with site.serving(), new_crawl(tmp_path / "crawl", site, redis_url, crawl_name) as crawl:
        crawl.start()
        wait_until(lambda: len(searches(site)) > 15, "some queries were answered")
        crawl.kill()
        before = searches(site)
        assert crawl.run() == 0, crawl.log.read_text()
        log = crawl.log.read_text()
    fetched = {hit.path for hit in site.hits if hit.path.startswith("/record/")}
    assert len(fetched) >= 0.95 * RECORDS
    asked = searches(site)
    assert len(asked) - len(set(asked)) <= IN_PROCESS_MAX, "a page of results is not asked for again"
    assert len(asked) > len(before)
    assert_is_polite(site, DELAY_S)
    item = items_of(crawl)[-1]
    assert item["records"] == len(fetched), item
    assert item["stopped"] == "yield"
    assert item["low"] <= RECORDS <= item["high"] + 1, Total(item["estimated"], item["low"], item["high"])
    assert "stopped by yield" in log


@pytest.mark.long("what failures do, in tests/annexes/forms")
def test_a_form_that_robots_txt_forbids_is_not_sent(tmp_path: Path, redis_url: str, crawl_name: str) -> None:
    """It is left alone after three queries that the frontier refused; the number of queries bounds the other one."""
    site = SearchedSite(new_records(8))
    with site.serving(), new_crawl(tmp_path / "crawl", site, redis_url, crawl_name, queries="3") as crawl:
        assert crawl.run() == 0, crawl.log.read_text()
    stopped = {item["action"].removeprefix(site.url): item["stopped"] for item in items_of(crawl)}
    assert stopped == {"search": "queries", "private/search": "failing"}
    assert_is_polite(site, DELAY_S)


class Shelves(SearchedSite):
    """A site without forms: each page leads to the next, as long as it is open."""

    is_open = True

    def answer(self, method: str, target: str, sent: str = "") -> tuple[int, str, str]:
        if target == "/robots.txt":
            return 404, "text/plain", ""
        number = int(target.strip("/") or 0)
        return 200, "text/html", f"<title>{number}</title><a href=/{number + 1}>.</a>" if self.is_open else "<p>end"


@pytest.mark.long("the thread of the disk, in tests/annexes/forms; it is said after ten seconds that a disk hangs")
def test_a_disk_that_hangs_or_is_full_holds_forms_alone(tmp_path: Path, redis_url: str, crawl_name: str) -> None:
    """Other pages are fetched meanwhile, SIGTERM ends the node, and nothing that was learnt is lost or asked again."""
    site, shelves = SearchedSite(new_records(RECORDS), cap=60), Shelves(address="127.0.0.2")
    word = tmp_path / "disk"
    crawl = new_crawl(tmp_path / "crawl", site, redis_url, crawl_name, [shelves.url])
    with site.serving(), shelves.serving(), crawl:
        crawl.settings |= {
            "BIGCRAWL_IN_PROCESS_MAX": 2 * RECORDS,
            "EXTENSIONS": json.dumps({"tests.support.faults.disk.FaultyDisk": 0}),
            "FAULTY_DISK": word,
        }

        def assert_only_shelves_go_on(problem: str) -> None:
            wait_until(lambda: f"cannot be used: {problem}" in crawl.log.read_text(), "it is said")
            asked, shelved = len(searches(site)), len(shelves.hits)
            wait_until(lambda: len(shelves.hits) > shelved + 20, "pages without forms are fetched")
            assert len(searches(site)) <= asked + WIDTH, "no query is asked but those under way"

        crawl.start()
        wait_until(lambda: len(searches(site)) > 10, "some queries were answered")
        disk.say(word, disk.PAGES_HANGING)
        assert_only_shelves_go_on("no answer for 10 s")
        crawl.terminate()
        assert crawl.wait(STOP_S) == 0, crawl.log.read_text()
        assert not {"Traceback", "destroyed"} & set(crawl.log.read_text().split()), crawl.log.read_text()
        disk.say(word, "")
        before = len(searches(site))
        crawl.start()
        wait_until(lambda: len(searches(site)) > before + 5, "it goes on")
        disk.say(word, disk.PAGES_FULL)
        assert_only_shelves_go_on("[Errno 28]")
        disk.say(word, "")
        shelves.is_open = False
        assert crawl.wait(300) == 0, crawl.log.read_text()
        log = crawl.log.read_text()
    assert 1 <= log.count("cannot be used") == log.count("can be used again"), "it is said once, and so is its end"
    assert len({hit.path for hit in site.hits if hit.path.startswith("/record/")}) >= 0.95 * RECORDS
    asked = searches(site)
    assert len(asked) - len(set(asked)) <= WIDTH, "those whose answers the hung disk did not take"
    assert_is_polite(site, DELAY_S)
    assert items_of(crawl)[-1]["stopped"] == "yield"


def bodies_in(warc: Path) -> Counter[str]:
    """The bodies of the stored requests that were sent by POST."""
    records = [
        part for path in warc.glob("*.warc.gz") for part in gzip.decompress(path.read_bytes()).split(b"WARC/1.1")
    ]
    sent = [record.split(b"\r\n\r\n", 2)[1:] for record in records if b"WARC-Type: request" in record]
    return Counter(body.decode().strip() for head, body in sent if head.startswith(b"POST /search "))


@pytest.mark.long("the request of a query, in tests/annexes/forms")
def test_a_form_that_a_rule_names_is_sent_by_post(tmp_path: Path, redis_url: str, crawl_name: str) -> None:
    """Its records are found, each query is sent once, and stored with what was sent."""
    site = SearchedSite(new_records(RECORDS), cap=60, method="post")
    rule = f"^{re.escape(site.url)}search$"
    with site.serving(), new_crawl(tmp_path / "crawl", site, redis_url, crawl_name, post=rule) as crawl:
        crawl.settings["BIGCRAWL_WARC_DIR"] = tmp_path / "warc"
        assert crawl.run() == 0, crawl.log.read_text()
    assert len({hit.path for hit in site.hits if hit.path.startswith("/record/")}) >= 0.95 * RECORDS
    posts = Counter(hit.body for hit in site.hits if hit.method == "POST")
    assert {hit.path for hit in site.hits if hit.method == "POST"} == {"/search"}
    assert set(posts.values()) == {1}
    assert [hit for hit in site.hits if hit.target.startswith("/search?")], "further pages are links"
    assert bodies_in(tmp_path / "warc") == posts
    assert_is_polite(site, DELAY_S, posts=True)
    item = items_of(crawl)[-1]
    assert (item["action"], item["stopped"]) == (f"{site.url}search", "yield")


@pytest.mark.long("which forms are refused, and what is said of it, in tests/annexes/forms")
@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("", []),
        ("/(login|upload|comment)$", ["(personal)", "(encoding)", "(field-textarea)"]),
        ("/about$", ["no form"]),
    ],
)
def test_no_form_is_sent_by_post_that_no_rule_names_rightly(
    tmp_path: Path, redis_url: str, crawl_name: str, rule: str, said: list[str]
) -> None:
    """A rule for a form with other fields than a search, or for none, gives a message and no request."""
    site = SearchedSite(new_records(8), method="post")
    with site.serving(), new_crawl(tmp_path / "crawl", site, redis_url, crawl_name, post=rule) as crawl:
        assert crawl.run() == 0, crawl.log.read_text()
        log = crawl.log.read_text()
    assert_is_polite(site, DELAY_S)
    assert searches(site) == []
    assert [text for text in said if log.count(text) != 1] == []
    assert ("WARNING" in log) is bool(rule)
