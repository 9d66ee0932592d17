"""Sitemaps that robots.txt names, told to the spider in a real crawl."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from tests.integration.robots.origin import Answer, Host, Origin
from tests.integration.robots.test_conformance import SETTINGS
from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path

NAMESPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def index_of(*urls: str) -> bytes:
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f'<?xml version="1.0"?><sitemapindex xmlns="{NAMESPACE}">{entries}</sitemapindex>'.encode()


def sitemap_of(*urls: str) -> bytes:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return f'<?xml version="1.0"?><urlset xmlns="{NAMESPACE}">{entries}</urlset>'.encode()


def fill(site: Host, other: Host) -> None:
    """An index, a gzipped sitemap on another host, one in the wrong place, and ones that are none."""
    robots = (
        f"Sitemap: {site.origin}/index.xml\nUser-agent: *\nDisallow: /no\nSITEMAP:/plain.xml\n"
        f"Sitemap: {site.origin}/gone.xml\nSitemap: {site.origin}/junk.xml\nSitemap: {site.origin}/no/closed.xml\n"
        f"Sitemap: mailto:x@y.example\nSitemap: {site.origin}/{'x' * 3_000}\n"
    )
    packed = gzip.compress(sitemap_of(f"{site.origin}/packed", f"{site.origin}/no/listed"))
    site.answers = {
        "/robots.txt": (Answer(200, robots.encode()),),
        "/index.xml": (Answer(200, index_of(f"{other.origin}/packed.xml.gz", f"{site.origin}/index.xml")),),
        "/plain.xml": (Answer(200, sitemap_of(f"{site.origin}/plain?a=1&amp;b=2", "javascript:x")),),
        "/gone.xml": (Answer(404, b"gone"),),
        "/junk.xml": (Answer(200, b"\x1f\x8bnot gzip at all"),),
    }
    other.answers = {
        "/robots.txt": (Answer(200, f"Sitemap: {site.origin}/plain.xml\n".encode()),),
        "/packed.xml.gz": (Answer(200, packed, (("Content-Type", "application/gzip"),)),),
    }


@pytest.mark.parametrize("reads", [True, False])
def test_sitemaps_are_read_by_who_asks_for_them(tmp_path: Path, reads: bool) -> None:
    """What they list is fetched once, but for what is closed; a spider that does not ask gets nothing of it."""
    with no_strays_below(tmp_path), Origin(tmp_path) as origin:
        site, other = origin.listen(0), origin.listen(1)
        fill(site, other)
        arguments = {"sitemaps": "1"} if reads else {}
        with Crawl(tmp_path / "crawl", [site.origin + "/"], SETTINGS, arguments=arguments) as crawl:
            assert crawl.run() == 0
            log = crawl.log.read_text()
    listed = ["/gone.xml", "/index.xml", "/junk.xml", "/packed", "/plain.xml", "/plain?a=1&b=2"]
    assert sorted(site.asked) == sorted(["/", "/robots.txt", *(listed if reads else ())])
    assert sorted(other.asked) == (["/packed.xml.gz", "/robots.txt"] if reads else [])
    assert ("'bigcrawl/sitemaps/found': 6" in log) is reads
    assert "Traceback" not in log
