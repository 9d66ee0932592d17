"""A plain spider of somebody else's project gets from bigcrawl what Scrapy's own scheduler gives it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from tests.integration.scrapy_compat.project import Project
    from tests.integration.scrapy_compat.site import Site


def test_plain_spider_works_unchanged(project: Project, site: Site, crawl_name: str) -> None:
    """Callbacks, cb_kwargs, meta, headers, bodies, dont_filter, redirects, retries and errbacks are Scrapy's:
    the same requests reach the site, and the same items come out.
    """
    known = {"origins": ",".join(site.origins)}
    stock = project.crawl_stock("plain", known)
    wanted = sorted((hit.method, hit.path, hit.body) for hit in site.pages())
    for _ in range(4):  # REDIRECT_MAX_TIMES: we ask once
        wanted.remove(("GET", "/redirect/forever", b""))
    site.forget()
    ours = project.crawl("plain", crawl_name, known)

    assert stock.status == ours.status == 0, ours.log
    assert len(stock.items) == 35
    assert ours.bag == stock.bag
    assert sorted((hit.method, hit.path, hit.body) for hit in site.pages()) == wanted
    # The callback that fails is told as Scrapy tells it, and nothing else is an error of ours.
    assert [line for line in ours.lines("ERROR") if "bigcrawl" in line] == []
    assert "ValueError: a callback of somebody's that fails" in ours.log
    assert "Closing spider (finished)" in ours.log

    _check_what_the_site_saw(site)
    _check_the_items(ours.items)


def _check_what_the_site_saw(site: Site) -> None:
    """What is promised, apart from what Scrapy happens to do."""
    (everything,) = (hit for hit in site.pages() if hit.path.startswith("/echo/everything"))
    assert everything.path == "/echo/everything?b=2&a=1"
    assert everything.headers["accept-language"] == "de"
    assert everything.headers["cookie"] == "basket=full"
    assert everything.headers["referer"] == f"{site.origins[0]}/"
    bodies = [(hit.method, hit.body) for hit in site.pages() if hit.path == "/echo/body"]
    assert sorted(bodies) == [
        ("GET", b""),
        ("HEAD", b""),
        ("POST", b"query=caf%C3%A9&page=1&page=2"),
        ("POST", b"query=other"),
        ("POST", json.dumps({"query": ["json", 1]}).encode()),
        ("PUT", bytes(range(256))),
    ]
    assert site.paths("/page/1") == ["/page/1"], "seen once is fetched once"
    assert site.paths("/page/always") == ["/page/always"] * 3, "dont_filter is fetched each time"
    assert len(site.paths("/flaky/1/comes")) == 2
    assert len(site.paths("/flaky/9/never")) == 2, "RETRY_TIMES=1 bounds the tries"
    assert site.paths("/redirect/forever") == ["/redirect/forever"], "a redirect to itself leads nowhere"
    assert sorted(site.paths("/redirect/loop")) == ["/redirect/loop-a", "/redirect/loop-b"]
    assert site.paths("/private") == [], "robots.txt is obeyed"
    cookies = [hit.headers.get("cookie", "") for hit in site.pages() if hit.path == "/cookie-gate"]
    assert ["gate=open" in cookie for cookie in cookies] == [False, True]
    robots = [hit.origin for hit in site.hits if hit.path == "/robots.txt"]
    assert sorted(robots) == sorted(site.origins), "asked for once a host"
    for origin in site.origins:
        spans = sorted((hit.started, hit.ended) for hit in site.hits if hit.origin == origin)
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


def _check_the_items(items: list[dict[str, Any]]) -> None:
    everything, errors = ([item for item in items if item["kind"] == kind] for kind in ("everything", "errback"))
    (item,) = everything
    assert item["number"] == 3
    assert item["pair"] == ["tuple", "tuple", [1, ["two", 3]]]
    assert item["nested"] == "{'list': [1.5, None, True], 7: 'seven'}"
    assert item["when"] == "2026-11-21T12:30:00+00:00"
    assert (item["members"], item["raw"]) == ("{1, 2}", "b'\\x00\\xff'")
    assert item["basket"] == "{'goods': [9]}"
    *attributes, [cookie] = item["request"]
    assert attributes == ["GET", "latin-1", ["flagged"], 3]
    assert (cookie["name"], cookie["value"]) == ("basket", "full")
    assert item["depth"] == 1
    assert {error["how"]: error["error"] for error in errors} == {
        "/status/404": "HttpError",
        "/status/500": "HttpError",
        "/flaky/9/never": "HttpError",
        "/private/page": "IgnoreRequest",
        "/redirect/forever": "IgnoreRequest",
    }
    classes = {item["class"] for item in items if item["kind"] == "echo"}
    assert classes == {"FormRequest", "JsonRequest", "Request"}


def test_priorities_order_a_host(project: Project, site: Site, crawl_name: str) -> None:
    """Of the URLs that wait for a host, the one with the highest priority is fetched first."""
    with ThreadPoolExecutor(1) as pool:
        crawl = pool.submit(project.crawl, "priority", crawl_name, {"origins": ",".join(site.origins)})
        wait_until(lambda: crawl.done() or project.urls(crawl_name)["queued"] == 7, "all wait for the host")
        site.released.set()
        ours = crawl.result()
    assert ours.status == 0, ours.log
    order = [int(path.rpartition("/")[2]) for path in site.paths("/page/priority/")]
    assert order == [9, 5, 5, 1, 0, -3, -8]


def test_connection_that_is_refused_reaches_the_errback(project: Project, site: Site, crawl_name: str) -> None:
    """An errback hears of a host that nobody serves as Scrapy would tell it."""
    settings = {"BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts"}
    known = {"origins": site.origins[0], "refusing": site.refusing}
    ours = project.crawl("refused", crawl_name, known, settings)
    assert ours.status == 0, ours.log
    assert ours.items == [{"kind": "errback", "error": "DownloadConnectionRefusedError"}]


def test_batches_of_links_carry_callbacks(project: Project, site: Site, crawl_name: str) -> None:
    """A `Links` brings callback, errback, cb_kwargs, meta and depth to each URL within allowed_domains."""
    ours = project.crawl("linked", crawl_name, {"origins": ",".join(site.origins)})
    assert ours.status == 0, ours.log
    here, other, *_ = site.origins
    found = {item["url"]: (item["depth"], item.get("pair"), item.get("tag")) for item in ours.of_kind("page")}
    linked = (1, ["tuple", 1, 2], "{'set'}")
    plain = (1, ["tuple"], "None")
    assert found == {
        f"{here}/": (0, None, None),
        f"{here}/shop/": (0, None, None),
        **{f"{here}/page/{number}": linked for number in (1, 2, 3)},
        **{f"{here}/shop/category/{number}": linked for number in (0, 1)},
        **{f"{here}{path}": plain for path in ("/page/7", "/page/8", "/shop/page/8")},
        f"{other}/page/beside": (1, ["tuple", "request"], "None"),
    }
    assert len(ours.of_kind("page")) == len(found)
    assert ours.of_kind("errback") == [{"kind": "errback", "url": f"{other}/status/404"}]
