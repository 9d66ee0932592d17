"""Real plug-ins, each on stock Scrapy and on bigcrawl: the same items. `make test-plugins` installs them."""

from __future__ import annotations

import csv
import gzip
import json
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import fromstring, tostring

import pytest

from tests.plugins.servers import Api, BannedProxy, Proxy, server, url_of
from tests.support.servers.s3_server import new_bucket, s3_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.plugins.conftest import Sides
    from tests.plugins.runs import Run, Side

_OF_SLOTS = "in meta has no effect: docs/differences.md says what to set instead"


def warnings_of(run: Run) -> list[str]:
    """What bigcrawl warns of, without time and place."""
    lines = [line for line in run.log.splitlines() if "] WARNING: " in line and "[bigcrawl" in line]
    return [line.partition("] WARNING: ")[2] for line in lines]


@pytest.mark.parametrize("project", ["poet", "impersonate", "curl_cffi", "playwright"])
def test_plugin_gives_the_items_of_stock_scrapy(sides: Sides, project: str) -> None:
    """With a retry, a redirect, a URL that is given up, and a closed port; and without a warning."""
    runs = sides.run(project)
    assert warnings_of(runs.ours) == []


@pytest.mark.parametrize("place", [400, 600])
def test_zyte_api_works_before_and_after_the_add_on(sides: Sides, place: int) -> None:
    """Its own error for a host that refuses gets to the errback; a page of the same URL by a browser is another."""
    with server(Api) as api:
        runs = sides.run("zyte_api", {"ZYTE_API_URL": f"{url_of(api)}/v1/", "ADDONS": {"scrapy_zyte_api.Addon": place}})
    assert sum("RequestError" in item for item in runs.ours.items) == 1
    kinds = [json.loads(item).get("kind") for item in runs.ours.items]
    assert {"ZyteAPITextResponse", "JsonResponse"} <= set(kinds)
    assert [_OF_SLOTS in line for line in warnings_of(runs.ours)] == [True, True]


def test_rotating_proxies_are_changed_until_one_works(sides: Sides) -> None:
    """Of four one is banned, and one is dead."""
    with server(Proxy) as one, server(Proxy) as two, server(BannedProxy) as banned:
        proxies = [url_of(each) for each in (one, two, banned)]
        settings = {
            name: {"ROTATING_PROXY_LIST": [*proxies, site.refusing]}
            for name, site in zip(("stock", "ours", "killed"), sides.sites, strict=True)
        }
        runs = sides.run("rotating_proxies", **settings)
    assert [_OF_SLOTS in line for line in warnings_of(runs.ours)] == [True]


def test_monitors_end_as_on_stock_scrapy(sides: Sides) -> None:
    """Errors, retries, statuses, exceptions, items and their fields, with the same numbers."""
    runs = sides.run("monitors")
    assert runs.ours.stats["verdicts"] == runs.stock.stats["verdicts"]
    ended = [status for status, _ in runs.stock.stats["verdicts"].values()]
    assert {"OK", "FAIL"} <= set(ended)
    for one, other in ((runs.ours, runs.stock), (runs.stock, runs.ours)):
        validation = {name: value for name, value in one.stats.items() if name.startswith("spidermon/")}
        assert validation
        assert validation.items() <= other.stats.items()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as url:
        yield url


def objects_of(bucket: str) -> dict[str, bytes]:
    import s3fs

    files = s3fs.S3FileSystem(skip_instance_cache=True)
    return {path.partition("/")[2]: files.cat_file(path) for path in files.find(bucket)}


def contents_of(objects: dict[str, bytes]) -> list[tuple[str, bytes]]:
    return sorted((path.rpartition("/")[0], content) for path, content in objects.items())


def in_s3(endpoint: str) -> dict[str, Any]:
    secrets = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "test")
    return {**secrets, "AWS_ENDPOINT_URL": endpoint, "AWS_REGION_NAME": "us-east-1"}


def test_media_pipelines_store_the_same_in_s3(sides: Sides, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and images, one after a retry, none that robots.txt forbids."""
    buckets = {name: new_bucket(endpoint, monkeypatch) for name in ("stock", "ours", "killed")}
    stores = {name: {"FILES_STORE": f"{url}/files/", "IMAGES_STORE": f"{url}/images/"} for name, url in buckets.items()}
    runs = sides.run("media", in_s3(endpoint), **stores)
    assert warnings_of(runs.ours) == []
    stock, ours, killed = (objects_of(buckets[name]) for name in ("stock", "ours", "killed"))
    assert len(stock) > 6
    # A file is named after its URL, which is of the side's own site.
    assert contents_of(stock) == contents_of(ours) == contents_of(killed)


FEEDS: dict[str, Any] = {
    "items.jl": {"format": "jsonlines"},
    "items.csv": {"format": "csv", "fields": ["url", "status", "retries"]},
    "some.jl": {"format": "jsonlines", "item_filter": "tests.plugins.projects.feeds.Answered"},
    "batch-%(batch_time)s-%(batch_id)d.jl": {"format": "jsonlines", "batch_item_count": 2},
}
# Those of which a kill leaves less, as docs/items.md says.
WHOLE: dict[str, Any] = {
    "items.json": {"format": "json"},
    "items.xml": {"format": "xml"},
    "items.jl.gz": {"format": "jsonlines", "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]},
}
_READ: dict[str, Callable[[str], list[Any]]] = {
    ".jl": lambda text: [json.loads(line) for line in text.splitlines()],
    ".json": json.loads,
    ".csv": lambda text: list(csv.DictReader(text.splitlines())),
    ".xml": lambda text: [tostring(item, encoding="unicode") for item in fromstring(text)],  # noqa: S314 - our own
}


def feed_of(side: Side, pattern: str) -> list[str]:
    """The items of a feed, of all its files."""
    found: list[Any] = []
    for path in side.directory.glob(pattern):
        packed = path.read_bytes()
        text = gzip.decompress(packed) if path.suffix == ".gz" else packed
        found += _READ[path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix](side.named(text.decode()))
    return sorted(json.dumps(row, sort_keys=True) for row in found)


def test_feeds_hold_the_items_of_stock_scrapy(sides: Sides, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each format, in files and in S3; those that survive a kill have each item after it, too."""
    buckets = {name: new_bucket(endpoint, monkeypatch) for name in ("stock", "ours")}
    feeds = {
        name: {"FEEDS": {**FEEDS, **WHOLE, f"{url}/items-%(time)s.jl": {"format": "jsonlines"}}}
        for name, url in buckets.items()
    }
    runs = sides.run("feeds", in_s3(endpoint), **feeds, killed={"FEEDS": FEEDS})
    stock, ours, killed = (sides.side(name, "feeds", {}) for name in ("stock", "ours", "killed"))
    for pattern in ("items.jl", "items.csv", "some.jl", "batch-*.jl", *WHOLE):
        wanted = feed_of(stock, pattern)
        assert len(wanted) >= 3, pattern
        assert feed_of(ours, pattern) == wanted, pattern
        if pattern not in WHOLE:
            assert sorted(set(feed_of(killed, pattern))) == wanted, pattern
    assert feed_of(stock, "items.jl") == runs.stock.items
    for side, bucket in zip((stock, ours), buckets.values(), strict=True):
        [feed] = objects_of(bucket).values()
        assert sorted(side.named(feed.decode()).splitlines()) == sorted(
            side.named((side.directory / "items.jl").read_text()).splitlines()
        )


def test_cached_pages_are_asked_for_no_more(sides: Sides) -> None:
    """By a second crawl; what was not kept is asked for again, and the items are those of the first one."""
    sides.run("cache")
    for site, name in zip(sides.sites, ("stock", "ours", "killed"), strict=True):
        site.forget()
        (sides.directory / name / "items.jsonl").unlink()
    runs = sides.pair("cache", {"BIGCRAWL_CRAWL": "again"})
    asked = [sorted(site.paths()) for site in sides.sites[:2]]
    assert asked[0] == asked[1] == ["/flaky/9/never"] * 2, runs[1].log
