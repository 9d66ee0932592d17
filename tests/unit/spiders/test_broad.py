"""The broad spider: seeds in, links out."""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.utils.test import get_crawler

from bigcrawl.exceptions import ConfigError
from bigcrawl.links import Links
from bigcrawl.spiders import seeds as seeds_module
from bigcrawl.spiders.broad import BroadSpider
from bigcrawl.spiders.sitemap_reading import BATCH_URLS, SITEMAP_URLS_MAX
from tests.support.logs import of_bigcrawl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

OFF = ("COOKIES_ENABLED", "DOWNLOADER_STATS", "METAREFRESH_ENABLED")
PAGE = b'<html><a href="/x">x</a><a href="http://b.example/">b</a></html>'


def start_of(seeds: Any) -> list[list[str]]:
    """The batches that a spider starts with."""

    async def collect() -> list[list[str]]:
        return [list(batch.urls) async for batch in BroadSpider(seeds).start()]

    return asyncio.run(collect())


def links_of(response: Response) -> list[str]:
    async def collect() -> list[Any]:
        return [output async for output in BroadSpider("http://a.example/").parse(response)]

    outputs = asyncio.run(collect())
    assert all(isinstance(output, Links) for output in outputs)
    return [url for output in outputs for url in output.urls]


def test_seeds_are_urls_or_a_file_of_them(tmp_path: Path) -> None:
    """Both ways give the same batch, in canonical form; comments and empty lines do not count."""
    file = tmp_path / "seeds.txt"
    file.write_text("# of today\n\nHTTP://A.example\n  http://b.example/?q  \n")
    expected = [["http://a.example/", "http://b.example/?q"]]
    assert start_of(str(file)) == start_of("HTTP://A.example http://b.example/?q") == expected


def test_seeds_and_options_may_be_pythons_own(tmp_path: Path) -> None:
    """A script hands over lists, paths and bools where a command line has words."""
    urls = ["http://a.example/", "http://b.example/"]
    assert start_of(urls) == [urls]
    file = tmp_path / "seeds.txt"
    file.write_text("\n".join(urls))
    assert start_of(file) == [urls]
    spider = BroadSpider(urls, allowed_domains=["a.example"], sitemaps=True)
    assert spider.allowed_domains == ["a.example"]
    assert hasattr(spider, "parse_sitemap_urls")
    with pytest.raises(ConfigError, match="seeds is 7"):
        BroadSpider(7)  # type: ignore[arg-type]


def test_many_seeds_come_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of any size is read as it is needed."""
    monkeypatch.setattr(seeds_module, "SEEDS_PER_BATCH", 3)
    file = tmp_path / "seeds.txt"
    file.write_text("".join(f"http://a.example/{i}\n" for i in range(7)))
    assert [len(batch) for batch in start_of(str(file))] == [3, 3, 1]


def test_rubbish_lines_are_told_and_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A few are named, all are counted; bytes that are no text do not stop the start."""
    file = tmp_path / "seeds.txt"
    file.write_bytes(b"http://a.example/\n" + b"no url \xff\xfe\n" * 9 + b"ftp://c.example/\n")
    with caplog.at_level(logging.WARNING):
        assert start_of(str(file)) == [["http://a.example/"]]
    messages = [record.getMessage() for record in of_bigcrawl(caplog)]
    assert len(messages) == 6
    assert messages[0].startswith("seed 2 ")
    assert messages[-1] == "10 seeds in all were skipped"


@pytest.mark.parametrize("seeds", ["", "missing.txt", "."])
def test_seeds_that_are_not_there_are_a_clear_error(seeds: str) -> None:
    """No seeds, no such file, a directory: which value, and what it should be."""
    with pytest.raises(ConfigError, match="neither URLs nor a file"):
        start_of(seeds)


def test_file_without_a_single_url_is_a_clear_error(tmp_path: Path) -> None:
    """A crawl of nothing is not begun."""
    file = tmp_path / "seeds.txt"
    file.write_text("# none\n")
    with pytest.raises(ConfigError, match="no seeds"):
        start_of(str(file))


def test_edited_file_is_another_set_of_start_requests(tmp_path: Path) -> None:
    """The spider's arguments tell the starts apart; so does what the file was when it was read."""
    file = tmp_path / "seeds.txt"
    file.write_text("http://a.example/\n")
    before = BroadSpider(str(file)).seeds_version
    assert before == BroadSpider(str(file)).seeds_version != ""
    copy = tmp_path / "copy.txt"
    copy.write_bytes(file.read_bytes())
    os.utime(copy, (0, 0))
    assert BroadSpider(str(copy)).seeds_version == before, "a copy on another machine"
    file.write_text("http://b.example/\n")
    assert BroadSpider(str(file)).seeds_version != before
    assert BroadSpider("http://a.example/").seeds_version == ""


def test_only_a_file_that_is_not_here_is_lacking(tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("http://a.example/\n")
    seeds = (str(tmp_path / "missing.txt"), str(tmp_path / "seeds.txt"), "http://a.example/", "")
    assert [BroadSpider(text).lacks_start_requests for text in seeds] == [True, False, False, False]


@pytest.mark.parametrize(
    ("response", "followed"),
    [
        (
            HtmlResponse("http://a.example/", body=PAGE, headers={"Content-Type": "text/html; charset=utf-8"}),
            True,
        ),
        (
            HtmlResponse("http://a.example/", body=PAGE, headers={"Content-Type": "Application/XHTML+XML"}),
            True,
        ),
        (HtmlResponse("http://a.example/", body=PAGE), True),
        (
            HtmlResponse("http://a.example/", body=PAGE, status=404, headers={"Content-Type": "text/html"}),
            True,
        ),
        (TextResponse("http://a.example/", body=PAGE, headers={"Content-Type": "text/plain"}), False),
        (Response("http://a.example/", body=PAGE, headers={"Content-Type": "text/html"}), False),
    ],
)
def test_links_are_followed_on_html_pages_of_any_status(response: Response, followed: bool) -> None:
    """What is HTML by its type, or looks like it and has none."""
    assert links_of(response) == (["http://a.example/x", "http://b.example/"] if followed else [])


def test_page_that_refreshes_elsewhere_leads_there() -> None:
    """With Scrapy's own following off, the target is a link of the page, beside the others."""
    body = b"<html><meta http-equiv=refresh content='0;url=/moved'><a href=/x>x</a></html>"
    page = HtmlResponse("http://a.example/", body=body, headers={"Content-Type": "text/html"})
    assert links_of(page) == ["http://a.example/moved", "http://a.example/x"]


def test_what_a_broad_crawl_has_no_use_for_is_off_unless_set_again() -> None:
    """Neither cookies, nor Scrapy's counts of downloads, nor its meta refreshes; a subclass may differ."""

    class CountingSpider(BroadSpider):
        custom_settings = {**BroadSpider.custom_settings, "DOWNLOADER_STATS": True}  # noqa: RUF012 - Scrapy's own way

    for spider, counts in (BroadSpider, False), (CountingSpider, True):
        settings = get_crawler(spider).settings
        found = {name: settings.getbool(name) for name in OFF}
        assert found == {**dict.fromkeys(OFF, False), "DOWNLOADER_STATS": counts}
        assert settings.getbool("HTTPERROR_ALLOW_ALL")


@pytest.mark.parametrize("body", [b"", b"no XML", b"<", b"\x1f\x8bcut", PAGE, b"\x00\xff" * 99])
@pytest.mark.parametrize("status", [200, 404])
def test_what_is_no_sitemap_leads_nowhere(body: bytes, status: int) -> None:
    """Servers answer with anything; none of it is an error of the crawl's."""
    response = Response("http://a.example/s.xml", status=status, body=body)
    assert asyncio.run(outputs_of(BroadSpider(sitemaps="1").parse_sitemap(response))) == []


def test_sitemap_is_followed_in_batches_up_to_the_protocols_bound() -> None:
    """A list of a hundred thousand brings fifty, a thousand at a time; an index leads to more sitemaps."""
    locs = b"".join(b"<url><loc>/p%d</loc></url>" % number for number in range(SITEMAP_URLS_MAX + 10))
    response = Response("http://a.example/s.xml", body=gzip.compress(b"<urlset>%s</urlset>" % locs))
    *batches, last = asyncio.run(outputs_of(BroadSpider().parse_sitemap(response)))
    assert last.left_out.limit == "listing-entries"
    assert max(len(links.urls) for links in batches) == BATCH_URLS
    assert [url for links in batches for url in links.urls] == [f"/p{n}" for n in range(SITEMAP_URLS_MAX)]
    assert {(links.base, links.callback) for links in batches} == {(response.url, None)}
    index = b"<sitemapindex><sitemap><loc>/t.xml</loc></sitemap><sitemap/></sitemapindex>"
    [links] = asyncio.run(outputs_of(BroadSpider().parse_sitemap(Response("http://a.example/i.xml", body=index))))
    assert (links.urls, links.callback) == (["/t.xml"], "parse_sitemap")


async def outputs_of(generator: AsyncIterator[Any]) -> list[Any]:
    return [output async for output in generator]
