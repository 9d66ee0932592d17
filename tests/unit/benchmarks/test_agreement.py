"""The sides do the same work, and a side that does less is found out."""

from __future__ import annotations

from scrapy.http import HtmlResponse

from benchmarks.crawl.agreement import disagreements, faults
from bigcrawl_simweb.basics.addresses import address_of
from bigcrawl_simweb.model.uniform import UniformWeb

HTML = {"Content-Type": "text/html; charset=utf-8"}


def page_of_uniform_web(host: int) -> HtmlResponse:
    web, port = UniformWeb(7, 50), 8080
    url = web.seeds(port)[host]
    target = url.split(f":{port}")[1]
    return HtmlResponse(url, headers=HTML, body=web.answer(address_of(host), target, port).body)


def test_all_sides_find_the_links_of_the_benchmarks_pages() -> None:
    assert disagreements([page_of_uniform_web(host) for host in (0, 7, 49)]) == []


def test_a_page_with_a_link_that_one_side_passes_over_is_told() -> None:
    # Scrapy's extractor leaves out links to what it takes for no page.
    body = b"<a href='/one.html'>one</a> <a href='/two.pdf'>two</a>"
    [said] = disagreements([HtmlResponse("http://a.example/", headers=HTML, body=body)], 2)
    assert "only bigcrawl ['http://a.example/two.pdf']" in said


def test_a_page_with_another_number_of_links_is_told() -> None:
    page = HtmlResponse("http://a.example/", headers=HTML, body=b"<a href='/one.html'>one</a>")
    assert disagreements([page]) == ["http://a.example/ has 1 links, not 60"]


def test_a_crawl_that_did_everything_has_no_faults() -> None:
    stats = {"bigcrawl/links/found": 60 * 9_990 + 44_000, "bigcrawl/warc/records": 3 * 10_500}
    assert faults("bigcrawl", stats, pages=10_000, seeds=44_000) == []
    assert faults("stock", {"bench/links": 60 * 10_000}, pages=10_000, seeds=44_000) == []


def test_a_crawl_without_links_or_warc_is_found_out() -> None:
    assert faults("stock", {"bench/links": 59 * 9_000}, pages=10_000, seeds=0)
    links = {"bigcrawl/links/found": 60 * 10_000}
    assert [text.split(":")[0] for text in faults("bigcrawl", links, pages=10_000, seeds=0)] == [
        "not every page in a WARC file"
    ]
