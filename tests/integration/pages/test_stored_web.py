"""A stored crawl is served again: a crawl of it finds what was stored, and nothing else."""

from __future__ import annotations

import re
import subprocess
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.crawling.verdicts import warc_files
from tests.support.running import warm
from tests.unit.stored.warc_files import page, stored
from tests.unit.warc.reading import read_checked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def served(*options: str | Path) -> Iterator[int]:
    """`python -m bigcrawl_simweb serve`, until the end of the block; its port."""
    process = warm.start(["bigcrawl_simweb", "serve", *options], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        ready = re.match(rb"simweb ready: port=(\d+) pages=\d+\n", process.stdout.readline())
        assert ready is not None
        yield int(ready[1])
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def crawled(
    directory: Path, seeds: list[str], redis_url: str, options: dict[str, Any] | None = None, **settings: Any
) -> dict[str, tuple[bytes, str]]:
    """Status and digest of the last stored answer of each URL of a crawl."""
    shared = {"BIGCRAWL_REDIS_URL": redis_url, "BIGCRAWL_CRAWL": f"again-{uuid.uuid4().hex}"}
    chosen = {
        **shared,
        "BIGCRAWL_HOST_DELAY": 0,
        "BIGCRAWL_CRAWL_DELAY_MAX": 0.01,
        "BIGCRAWL_BACKOFF": 0.1,
        "BIGCRAWL_PARTITIONS": 4,
        **settings,
    }
    with Crawl(directory, seeds, chosen, **(options or {})) as crawl:
        assert crawl.run() == 0
    found = {}
    for path in warc_files(directory / "warc"):
        for record in read_checked(path):
            if record.type in ("response", "revisit"):
                status, digest = record.http_head[0].split()[1], record.headers["WARC-Payload-Digest"]
                found[record.headers["WARC-Target-URI"]] = status, digest
    return found


def test_crawl_of_a_stored_crawl_stores_the_same(tmp_path: Path, redis_url: str) -> None:
    """URLs, statuses and digests, robots.txt, redirects, errors and copies by reference among them."""
    with SimulatedWeb(tmp_path / "web", hosts=3, pages=4, features="redirects,markup,copies") as web:
        seeds, port = web.seeds, web.saved.port
        first = crawled(tmp_path / "first", seeds, redis_url, BIGCRAWL_WARC_COPIES="by-reference")
    with served("--warc", tmp_path / "first" / "warc", "--port", str(port)):
        again = crawled(tmp_path / "again", seeds, redis_url)
    assert len(first) > 50
    assert {b"200", b"301", b"404"} <= {status for status, _ in first.values()}
    assert again == first


def test_crawl_of_a_stored_crawl_of_both_schemes_by_proxy(tmp_path: Path, redis_url: str) -> None:
    """A snapshot of the web as it is: https, redirects from one scheme to the other, names that nobody resolves."""
    links = b'<a href="/x">x</a><a href="http://b.example/">b</a><a href="https://c.example:8443/">c</a>'
    moved: dict[str, Any] = {"status": 301, "response_headers": [(b"Location", b"https://a.example/")]}
    texts = {"https://a.example/": links, "https://a.example/x": b"x", "https://c.example:8443/": b"c"}
    pages = [page("http://a.example/", b"", **moved), *(page(url, body, 1) for url, body in texts.items())]
    path = stored(tmp_path / "first", *pages, page("http://b.example/", b"none", 2, status=410))
    with served("--warc", path, "--proxy-only") as port:
        proxy = f"http://127.0.0.1:{port}"
        ours = {"environment": {"http_proxy": proxy, "https_proxy": proxy, "no_proxy": ""}}
        again = crawled(
            tmp_path / "again", ["http://a.example/"], redis_url, ours, BIGCRAWL_CONTACT="tests@bigcrawl.org"
        )
    statuses = {url: status for url, (status, _) in again.items() if not url.endswith("/robots.txt")}
    assert statuses == {"http://a.example/": b"301", "http://b.example/": b"410", **dict.fromkeys(texts, b"200")}
