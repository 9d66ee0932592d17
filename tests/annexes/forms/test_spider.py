"""The spider between pages and the state of forms; tests/integration/spiders/test_forms.py crawls."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.test import get_crawler
from twisted.python.failure import Failure

from bigcrawl.exceptions import ConfigError
from bigcrawl.links import Links
from bigcrawl.middlewares.link_checks import link_checks_of
from bigcrawl.middlewares.page_requests import PageRequests
from bigcrawl.scheduler.adapter.fetch_errors import FetchAbortedError
from bigcrawl.scheduler.adapter.request_codec import ONCE
from bigcrawl_forms import spider
from bigcrawl_forms.campaign import NO_WORD
from bigcrawl_forms.spider import FORMS_MAX, QUERY_PRIORITY, RECORD_PRIORITY, FormsSpider
from tests.annexes.forms.hung_disk import HungDisk
from tests.annexes.forms.pages import page_of
from tests.unit.spiders.test_broad import outputs_of

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy.http import HtmlResponse

FORM = "<form action=/search role=search><input name=q><button>Go</button></form>"
POSTED = FORM.replace("<form", "<form method=post")
HTML = {"Content-Type": "text/html"}
ITEMS = "http://a.example/items/"


class Anywhere(FormsSpider):
    custom_settings = {**FormsSpider.custom_settings, "BIGCRAWL_SCOPE": "any"}  # noqa: RUF012 - Scrapy's way


class Pages:
    """A spider in a directory, and its answers to pages."""

    def __init__(self, directory: Path, **arguments: Any) -> None:
        settings = {"BIGCRAWL_STATE_DIR": str(directory), **arguments.pop("settings", {})}
        crawler = get_crawler(Anywhere, settings)
        self.spider = crawler.spider = Anywhere.from_crawler(crawler, seeds="http://a.example/", **arguments)
        self.stats = crawler.stats
        self._checks = link_checks_of(crawler)

    def parse(self, body: str, url: str = "http://a.example/page", **fields: Any) -> list[Request]:
        return requests_in(self._asked(self.spider.parse(page_of(body, url, headers=HTML, **fields))))

    def answer(self, request: Request, body: str, **fields: Any) -> list[Any]:
        url = fields.pop("url", request.url)
        headers = {**HTML, **fields.pop("headers", {})}
        request = request.replace(meta={**request.meta, **fields.pop("meta", {})})
        response: HtmlResponse = page_of(body, url, headers=headers, request=request, **fields)
        return self._asked(self.spider.parse_results(response, **request.cb_kwargs))

    def fail(self, request: Request, error: Exception) -> list[Any]:
        failure = Failure(error)
        failure.request = request  # type: ignore[attr-defined]
        return self._asked(self.spider.query_failed(failure))

    def _asked(self, outputs: Any) -> list[Any]:
        return asyncio.run(outputs_of(outputs))


def requests_in(outputs: list[Any]) -> list[Request]:
    return [one for one in outputs if isinstance(one, Request)]


def records_in(outputs: list[Any]) -> list[str]:
    return [url for one in outputs if isinstance(one, Links) and one.callback == "parse_record" for url in one.urls]


def results(*numbers: int, more: str = "") -> str:
    rows = "".join(f"<a href=/items/{number}>Item {number}</a>" for number in numbers)
    return f"<html><a href=/about>About</a>{rows}{more}</html>"


def probed(pages: Pages) -> list[Request]:
    """Answer the query for a word that no record has; the first queries."""
    [probe] = pages.parse(FORM)
    return requests_in(pages.answer(probe, results()))


def test_a_query_is_a_request_that_is_fetched_once(tmp_path: Path) -> None:
    pages = Pages(tmp_path, words="honey wax comb")
    [probe] = pages.parse(FORM)
    assert probe.url == f"http://a.example/search?q={NO_WORD}"
    first, second = requests_in(pages.answer(probe, results()))
    assert (first.url, second.url) == ("http://a.example/search?q=honey", "http://a.example/search?q=wax")
    assert first.meta[ONCE][1:] == ["honey", 1]
    assert (first.method, first.priority, first.dont_filter) == ("GET", QUERY_PRIORITY, False)
    assert first.errback is not None
    assert pages.parse(FORM, "http://a.example/other") == [], "the form is known"


def test_records_are_the_new_links_of_an_answer(tmp_path: Path) -> None:
    """Without the links that each page has; a page that is parsed again gives the same."""
    pages = Pages(tmp_path, words="honey wax comb")
    first, second = probed(pages)
    outputs = pages.answer(first, results(1, 2))
    assert records_in(outputs) == [f"{ITEMS}1", f"{ITEMS}2"]
    assert {one.priority for one in outputs if isinstance(one, Links)} == {RECORD_PRIORITY}
    assert [one.url for one in requests_in(outputs)] == [second.url, "http://a.example/search?q=comb"]
    assert records_in(pages.answer(second, results(2, 3))) == [f"{ITEMS}3"]
    again = pages.answer(first, results(1, 2))
    assert records_in(again) == [f"{ITEMS}1", f"{ITEMS}2"]
    assert pages.stats is not None
    assert pages.stats.get_value("forms/records") == 3


def test_pages_of_results_are_followed(tmp_path: Path) -> None:
    pages = Pages(tmp_path, words="honey", width=1)
    [first] = probed(pages)
    more = "<a href='/search?q=honey&amp;page=2'>2</a><a href='/search?q=honey&amp;page=3'>3</a>"
    [second] = requests_in(pages.answer(first, results(1, more=more)))
    assert second.url == "http://a.example/search?q=honey&page=2"
    assert second.meta[ONCE][1:] == ["honey", 2]
    assert second.cb_kwargs["page"] == 2


def test_a_restarted_spider_asks_again_for_what_is_outstanding(tmp_path: Path) -> None:
    pages = Pages(tmp_path, words="honey wax comb")
    first, second = probed(pages)
    pages.answer(first, results(1))
    again = Pages(tmp_path, words="honey wax comb")
    urls = [one.url for one in requests_in(again.answer(second, results(2)))]
    assert urls == ["http://a.example/search?q=comb"]
    assert [one.url for one in Pages(tmp_path, words="honey wax comb").parse(FORM)] == urls


def test_the_same_record_under_the_urls_of_two_queries_is_one(tmp_path: Path) -> None:
    pages = Pages(tmp_path, words="honey wax")
    first, second = probed(pages)
    assert records_in(pages.answer(first, "<a href='/items/1?q=honey&amp;x=7'>1</a>")) == [f"{ITEMS}1?q=honey&x=7"]
    assert records_in(pages.answer(second, "<a href='/items/1?q=wax&amp;x=7'>1</a>")) == []


def test_a_site_without_a_page_for_no_results_has_the_links_of_the_forms_page(tmp_path: Path) -> None:
    pages = Pages(tmp_path, words="honey", width=1)
    [probe] = pages.parse(FORM + "<a href=/about>About</a>")
    [first] = requests_in(pages.answer(probe, "", status=404))
    assert records_in(pages.answer(first, results(1))) == [f"{ITEMS}1"]


@pytest.mark.parametrize(
    ("charset", "sent"),
    [("latin1", "%E9"), ("utf-8", "%C3%A9"), ("koi8-r", "%26%23233%3B"), ("utf-16", "%C3%A9"), ("idna", "%C3%A9")],
)
def test_words_are_sent_in_the_charset_that_the_form_accepts(tmp_path: Path, charset: str, sent: str) -> None:
    form = FORM.replace("<form", f"<form accept-charset={charset}")
    [request] = Pages(tmp_path, words="é", records="/items/", width=1).parse(form)
    assert request.url.endswith(f"?q={sent}")


def test_a_rule_names_records(tmp_path: Path) -> None:
    """Then no word is asked for that has none."""
    pages = Pages(tmp_path, words="honey", records=r"/items/\d+$", width=1)
    [first] = pages.parse(FORM)
    assert first.url.endswith("q=honey")
    assert records_in(pages.answer(first, results(1, more="<a href=/tag/bee>bee</a>"))) == [f"{ITEMS}1"]


def test_an_answer_that_leads_to_the_only_record_is_that_record(tmp_path: Path) -> None:
    pages = Pages(tmp_path, words="honey")
    [first] = probed(pages)
    outputs = pages.answer(first, results(8, 9), url=f"{ITEMS}7", meta={"redirect_urls": [first.url]})
    assert records_in(outputs) == [f"{ITEMS}7"]


@pytest.mark.parametrize(
    ("more", "headers"),
    [("<meta name=robots content='noindex, nofollow'>", {}), ("", {"X-Robots-Tag": "none"})],
)
def test_an_answer_that_is_not_to_be_followed_has_no_records(
    tmp_path: Path, more: str, headers: dict[str, str]
) -> None:
    pages = Pages(tmp_path, words="honey wax comb")
    first, _ = probed(pages)
    outputs = pages.answer(first, results(1, more=more), headers=headers)
    assert records_in(outputs) == []
    assert len(requests_in(outputs)) == 2
    free = Pages(tmp_path / "free", words="honey", settings={"BIGCRAWL_NOFOLLOW": "follow"})
    [first] = probed(free)
    assert records_in(free.answer(first, results(1, more=more), headers=headers)) == [f"{ITEMS}1"]


def test_words_of_records_become_queries(tmp_path: Path) -> None:
    pages = Pages(tmp_path, words="honey", width=1)
    [first] = probed(pages)
    pages.answer(first, results(1))
    key = first.cb_kwargs["form"]
    for number in range(12):
        record = page_of("<p>pollen nectar</p>" if number < 9 else "<p>nectar</p>", f"{ITEMS}{number}", headers=HTML)
        asyncio.run(outputs_of(pages.spider.parse_record(record, form=key)))
    [campaign] = pages.spider._campaigns.values()
    campaign.add_failure(campaign.due()[0].query)
    assert campaign.due()[0].query.term == "nectar"


def test_a_failure_is_followed_by_another_query_and_an_aborted_fetch_by_none(tmp_path: Path) -> None:
    """The URL of an aborted fetch comes again."""
    pages = Pages(tmp_path, words="honey wax comb", width=1)
    [first] = probed(pages)
    assert pages.fail(first, FetchAbortedError("the node stops")) == []
    [second] = pages.fail(first, IgnoreRequest())
    assert second.url.endswith("q=wax")
    [third] = requests_in(pages.answer(second, "", status=500))
    assert third.url.endswith("q=comb")
    [last] = [one for one in pages.answer(third, "", status=500) if isinstance(one, dict)]
    assert (last["stopped"], last["queries"], last["records"]) == ("failing", 4, 0)


def test_not_found_is_an_answer_without_records(tmp_path: Path) -> None:
    pages = Pages(tmp_path, words="honey wax comb", width=1)
    [request] = probed(pages)
    for _ in range(2):
        [request] = requests_in(pages.answer(request, "", status=404))
    [item] = [one for one in pages.answer(request, "", status=404) if isinstance(one, dict)]
    assert item["stopped"] == "words"


@pytest.mark.parametrize(
    ("form", "arguments", "is_sent"),
    [
        (FORM, {}, True),
        (FORM.replace("/search", "http://b.example/search"), {}, False),
        (FORM.replace("/search", "http://b.example/search"), {"forms": r"^http://b\.example/search$"}, True),
        (FORM, {"forms": r"^http://b\.example/"}, False),
        (FORM.replace("<form", "<form method=post"), {}, False),
        (FORM.replace("<form", "<form method=post"), {"post": r"^http://a\.example/search$"}, True),
        (FORM.replace("<form", "<form method=post"), {"forms": r"^http://a\.example/search$"}, False),
        (FORM.replace("<input", "<input type=password name=p><input"), {"post": "search", "forms": "search"}, False),
        (FORM, {"settings": {"BIGCRAWL_FILTER_PATHS": ["Disallow: /search"]}}, False),
        (FORM, {"allowed_domains": "b.example"}, False),
    ],
)
def test_a_form_is_sent_where_rules_let_it_be(
    tmp_path: Path, form: str, arguments: dict[str, Any], is_sent: bool
) -> None:
    asked = Pages(tmp_path, words="honey", **arguments).parse(form)
    assert bool(asked) is is_sent
    if "post" in arguments and is_sent:
        assert (asked[0].method, asked[0].body) == ("POST", f"q={NO_WORD}".encode())
        assert asked[0].headers["Content-Type"] == b"application/x-www-form-urlencoded"


def test_queries_that_filters_drop_end_a_form(tmp_path: Path) -> None:
    """They are not yielded, and after three of them the form is left alone."""
    pages = Pages(tmp_path, words="a b c d", settings={"BIGCRAWL_FILTER_PATHS": ["Disallow: /search?q="]})
    assert pages.parse(FORM) == []
    assert pages.stats is not None
    assert pages.stats.get_value("forms/stopped/failing") == 1


@pytest.mark.parametrize(
    ("form", "arguments", "said"),
    [
        (FORM.replace("<input", "<input type=password name=p><input"), {"post": "/search"}, "(field-password)"),
        (POSTED, {"forms": "/search"}, "by -a forms= and not sent all the same (post)"),
        (FORM, {"post": "/about"}, "-a post=/about names no form"),
        (POSTED, {"post": "/search"}, ""),
        (POSTED, {}, ""),
    ],
)
def test_a_rule_that_names_no_search_form_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, form: str, arguments: dict[str, Any], said: str
) -> None:
    pages = Pages(tmp_path, words="honey", **arguments)
    for number in range(3):
        pages.parse(form, f"http://a.example/{number}")
    pages.spider.closed("finished")
    assert [record.levelname for record in caplog.records].count("WARNING") == bool(said)
    assert said in caplog.text


def test_numbered_pages_of_a_form_sent_by_post_are_followed(tmp_path: Path) -> None:
    """Their links have what was sent as their query, or nothing of it."""
    for number, link in enumerate(("/search?q=honey&amp;page=2", "/search?page=2")):
        pages = Pages(tmp_path / str(number), words="honey", post="/search", width=1)
        [probe] = pages.parse(POSTED)
        [first] = requests_in(pages.answer(probe, results()))
        [second] = requests_in(pages.answer(first, results(1, more=f"<a href='{link}'>2</a>")))
        assert (second.method, second.url) == ("GET", f"http://a.example{link.replace('&amp;', '&')}")


def test_a_page_whose_disk_hangs_comes_again_if_the_node_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its callback ends without output and without an error."""
    hung = HungDisk(monkeypatch)
    returned: list[Request] = []

    def abort(_: PageRequests, page: Request) -> FetchAbortedError:
        returned.append(page)
        return FetchAbortedError()

    monkeypatch.setattr(spider, "END_S", 0.01)
    monkeypatch.setattr(PageRequests, "are_ending", True)
    monkeypatch.setattr(PageRequests, "abort", abort)
    request = Request("http://a.example/page")
    assert Pages(tmp_path, words="honey").parse(FORM, request.url, request=request) == []
    assert returned == [request]
    assert "ERROR" not in caplog.text
    hung.answers.set()


def test_forms_of_a_crawl_are_bounded(tmp_path: Path) -> None:
    pages = Pages(tmp_path, words="honey")
    for number in range(0, 40, 10):
        pages.parse("".join(FORM.replace("/search", f"/search/{number + at}") for at in range(10)))
    assert len(pages.spider._campaigns) == FORMS_MAX
    assert pages.stats is not None
    assert pages.stats.get_value("forms/refused/too-many-forms") == 40 - FORMS_MAX


def test_what_was_found_is_logged_at_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pages = Pages(tmp_path, words="honey", queries=2)
    [first] = probed(pages)
    [item] = [one for one in pages.answer(first, results(1, 2)) if isinstance(one, dict)]
    assert item == {
        "form": first.cb_kwargs["form"],
        "page": "http://a.example/page",
        "action": "http://a.example/search",
        "queries": 2,
        "records": 2,
        "estimated": 2,
        "low": 2,
        "high": None,
        "stopped": "queries",
    }
    with caplog.at_level("INFO"):
        pages.spider.closed("finished")
    assert "2 records by 2 queries, of an estimated 2 (2 to inf); stopped by queries" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"queries": "many"}, "whole numbers"),
        ({"queries": 0}, "queries is 0: it must be 1 to"),
        ({"pages": 10**6}, "pages is 1000000"),
        ({"width": 0}, "width is 0"),
        ({"least": "nan"}, "least is nan"),
        ({"least": -1}, "least is -1"),
        ({"records": "("}, "records is '\\('"),
        ({"words": "/none/of/these"}, "words is"),
        ({"settings": {"DEPTH_LIMIT": 3}}, "DEPTH_LIMIT is 3"),
        ({"settings": {"BIGCRAWL_STORE_URL": "file:///x"}}, "-a forms_dir"),
    ],
)
def test_wrong_arguments_end_the_crawl(tmp_path: Path, arguments: dict[str, Any], said: str) -> None:
    wrong = Pages(tmp_path, **arguments).spider.wrong_arguments
    assert isinstance(wrong, ConfigError)
    with pytest.raises(ConfigError, match=said):
        raise wrong
