"""Crawls sites, and fetches the records behind their search forms."""

from __future__ import annotations

import asyncio
import codecs
import functools
import logging
import re
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeGuard, TypeVar
from urllib.parse import parse_qsl, urlencode

from scrapy import Request
from scrapy.http import TextResponse

from bigcrawl.exceptions import ConfigError
from bigcrawl.links import Links, page_text
from bigcrawl.markup import WEB_ENCODINGS
from bigcrawl.middlewares.link_checks import link_checks_of
from bigcrawl.middlewares.page_requests import PageRequests
from bigcrawl.scheduler.adapter.fetch_errors import FetchAbortedError
from bigcrawl.spiders.broad import BroadSpider, is_html
from bigcrawl.url.canonical import UrlError, canonicalize, host_of
from bigcrawl.url.key import PUBLIC_KEYS
from bigcrawl_forms.campaign import NO_WORD, Campaign
from bigcrawl_forms.classifying import refusal_of
from bigcrawl_forms.journal import Journal, StateDisk
from bigcrawl_forms.options import OPTION_NAMES, FormOptions, terms_of
from bigcrawl_forms.reading import forms_of
from bigcrawl_forms.results import next_page_of, records_of
from bigcrawl_forms.submitting import Query, SearchForm

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from bigcrawl_forms.campaign import Due

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

END_S: Final = 1.0
"""How long a page waits for the disk once the node ends, or up to twice that."""
FORMS_MAX: Final = 32
"""Forms of a crawl that are filled."""
RECORD_PRIORITY: Final = 20
QUERY_PRIORITY: Final = 10
"""Records come first: their words make the choice of queries better."""
_NO_RESULTS: Final = frozenset((404, 410))


def _until_the_end(callback: Callable[P, AsyncIterator[Any]]) -> Callable[P, AsyncIterator[Any]]:
    """End a callback quietly if its page will be fetched again, as the node ends before the disk answers."""

    @functools.wraps(callback)
    async def ending(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[Any]:
        with suppress(FetchAbortedError):
            async for output in callback(*args, **kwargs):
                yield output

    return ending


class FormsSpider(BroadSpider):
    """`-a seeds=FILE -a queries=200`: a `BroadSpider` that also fills the search forms of the pages it fetches.

    Yields an item for each form that is over: how many records its queries found, of how many that are estimated. The
    arguments are those of `BroadSpider`, and `words`, `records`, `forms`, `post`, `queries`, `pages`, `least`,
    `window`, `width`, `follow` and `forms_dir`: docs/guide/forms.md. A subclass overrides `parse_record`.
    """

    name = "forms"
    changeable_arguments = ("words", "queries", "pages", "least", "window", "width", "forms_dir")
    custom_settings = {  # noqa: RUF012 - Scrapy's own way
        **BroadSpider.custom_settings,
        "BIGCRAWL_SCOPE": "host",
    }

    def __init__(self, **kwargs: Any) -> None:
        given = {name: kwargs.pop(name) for name in OPTION_NAMES & kwargs.keys()}
        super().__init__(**kwargs)
        self._campaigns: dict[str, Campaign] = {}
        self._told: set[tuple[str, str]] = set()
        self._unused_rules = {"forms", "post"}
        self._refused: set[tuple[str, str]] = set()
        self._has_read = False
        try:
            self._options = FormOptions.parse(given)
        except ConfigError as error:
            self.wrong_arguments, self._options = error, FormOptions.parse({})

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        config = spider._config()
        if config.store.url and not spider._options.forms_dir:
            spider.wrong_arguments = spider.wrong_arguments or ConfigError(
                "BIGCRAWL_STORE_URL is set, so nodes share no disk, but they share what is known of forms: name a "
                "directory that all nodes see, -a forms_dir=/shared/forms"
            )
        if crawler.settings.getint("DEPTH_LIMIT"):
            spider.wrong_arguments = spider.wrong_arguments or ConfigError(
                f"DEPTH_LIMIT is {crawler.settings['DEPTH_LIMIT']}: each query is found on the answer to another, so "
                f"their depth grows; unset it, and limit the crawl by scope, or with -a follow=0"
            )
        return spider

    @_until_the_end
    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        """Follow the links of a page, and fill its search forms."""
        if self._options.follow:
            async for found in super().parse(response, **kwargs):
                yield found
        if _is_page(response):
            async for campaign in self._campaigns_on(response):
                requests = self._next_requests(campaign, response.url)
                async for found in self._once_safe(campaign, response.request, requests):
                    yield found

    @_until_the_end
    async def parse_record(self, response: Response, form: str = "", **_: Any) -> AsyncIterator[Any]:
        """Collect the words of a record's page, and handle it like any page."""
        if _is_page(response) and (campaign := await self._campaign_of(form, response.request)) is not None:
            campaign.add_text(_key_of(response.url), terms_of(page_text(response)))
            # Perhaps it is over for want of words.
            requests = self._next_requests(campaign, response.url) if campaign.is_over else ()
            async for found in self._once_safe(campaign, response.request, requests):
                yield found
        async for found in self.parse(response):
            yield found

    @_until_the_end
    async def parse_results(
        self, response: Response, form: str, term: str, options: list[str], page: int, **_: Any
    ) -> AsyncIterator[Any]:
        """Yield the records on a page of results, and the next queries."""
        campaign = await self._campaign_of(form, response.request)
        if campaign is None or campaign.form is None:
            logger.warning("an answer is skipped, because this node does not know its form, %(form)s", {"form": form})
            return
        query, outputs = Query(term, tuple(options)), list[Any]()
        if response.status in _NO_RESULTS:
            campaign.add_answer(query, page, (), "")
        elif not _is_page(response):
            campaign.add_failure(query)
        else:
            urls, next_url = self._read_results(response, campaign, campaign.form.action, query)
            records = {_record_key(url, campaign.form, term): url for url in reversed(urls)}
            is_repeated, before = campaign.has_answer(query, page), campaign.found
            new = [url for key, url in reversed(records.items()) if is_repeated or not campaign.is_found(key)]
            campaign.add_answer(query, page, records, next_url)
            self._count("records", campaign.found - before)
            if term != NO_WORD and new:
                outputs.append(
                    Links(
                        new, canonical=True, priority=RECORD_PRIORITY, callback="parse_record", cb_kwargs={"form": form}
                    )
                )
            elif term == NO_WORD and self._options.follow:
                async for found in super().parse(response):
                    yield found
        outputs += self._next_requests(campaign, response.url)
        async for found in self._once_safe(campaign, response.request, outputs):
            yield found

    @_until_the_end
    async def query_failed(self, failure: Failure) -> AsyncIterator[Any]:
        """Continue with another query, unless this node is stopping, so that the same query comes again."""
        request: Request = failure.request  # type: ignore[attr-defined]
        if isinstance(failure.value, FetchAbortedError):
            return
        campaign = await self._campaign_of(request.cb_kwargs["form"], request)
        if campaign is not None:
            self._count("failed")
            campaign.add_failure(Query(request.cb_kwargs["term"], tuple(request.cb_kwargs["options"])))
            async for found in self._once_safe(campaign, request, self._next_requests(campaign, request.url)):
                yield found

    def closed(self, reason: str) -> None:
        """Log the records found by each form, and the rules that matched none."""
        actions = [campaign.form.action for campaign in self._campaigns.values() if campaign.form]
        for name in sorted(self._unused_rules) if reason == "finished" and self._has_read else ():
            rule = getattr(self._options, name)
            if rule is not None and not any(map(rule.search, actions)):
                logger.warning(
                    "-a %(name)s=%(rule)s names no form of the pages that this process fetched: it is compared with "
                    "the URLs that forms are sent to",
                    {"name": name, "rule": rule.pattern},
                )
        for key, campaign in self._campaigns.items():
            item = self._item_of(key, campaign)
            stopped = f"stopped by {item['stopped']}" if item["stopped"] else "not over"
            logger.info(
                "form %(form)s at %(action)s: %(records)d records by %(queries)d queries, of an estimated %(total)s; "
                "%(stopped)s",
                {**item, "total": campaign.total(), "stopped": stopped},
            )

    async def _campaigns_on(self, response: TextResponse) -> AsyncIterator[Campaign]:
        """Yield the campaigns of a page's search forms that are new to this process; a new form starts one."""
        self._has_read = True
        for read in forms_of(response):
            action = _canonical(response.urljoin(read.attributes.get("action", "").strip()))
            naming = [name for name in ("forms", "post") if self._names(getattr(self._options, name), action)]
            self._unused_rules -= {*naming}
            refusal = refusal_of(read, action, post_allowed="post" in naming)
            if not refusal and not self._may_send(action, response.url):
                refusal = "elsewhere"
            if refusal:
                self._count(f"refused/{refusal}")
                if naming:
                    self._warn_of_refusal(action, refusal, naming)
                continue
            charset = read.attributes.get("accept-charset", "").split(" ")[0] or response.encoding
            form = SearchForm.of(read, action, response.url, _codec(charset))
            if form.key in self._campaigns:
                continue
            if len(self._campaigns) >= FORMS_MAX:
                self._count("refused/too-many-forms")
                continue
            campaign = self._begin(form.key)
            await self._wait_for(campaign.refresh(), response.request)
            if campaign.form is None:
                links = Links.from_page(response)
                campaign.open(form, map(_key_of, [*links.urls, *links.nofollow]))
                campaign.add_text(_key_of(response.url), terms_of(page_text(response)))
                logger.info("form %(key)s at %(action)s is being filled", {"key": form.key, "action": action})
            yield campaign

    def _warn_of_refusal(self, action: str, refusal: str, naming: list[str]) -> None:
        """Log once why a form is not sent although rules name it."""
        if (action, refusal) in self._refused or len(self._refused) >= FORMS_MAX:
            return
        self._refused.add((action, refusal))
        logger.warning(
            "a form at %(action)s is named by %(rules)s and not sent all the same (%(refusal)s): a rule allows a host "
            "or POST, but no field or word that speaks against a search, see docs/guide/forms.md",
            {"action": action, "rules": " and ".join(f"-a {name}=" for name in naming), "refusal": refusal},
        )

    def _next_requests(self, campaign: Campaign, found_on: str) -> Iterator[Any]:
        """Yield the requests of all outstanding queries, even if the frontier has them, and an item at the end."""
        form, asked = campaign.form, campaign.queries
        assert form is not None
        yield from self._passing_requests(form, campaign, found_on)
        self._count("queries", campaign.queries - asked)
        if campaign.is_over and (form.key, campaign.stop_reason) not in self._told:
            self._told.add((form.key, campaign.stop_reason))
            self._count(f"stopped/{campaign.stop_reason}")
            yield self._item_of(form.key, campaign)

    def _passing_requests(self, form: SearchForm, campaign: Campaign, found_on: str) -> list[Request]:
        """Return the due requests; a query that scope or filters drop counts as failed, and another is chosen."""
        checks = link_checks_of(self.crawler)
        while True:
            requests = {due.query: self._request_of(form, due) for due in campaign.due()}
            dropped = [query for query, request in requests.items() if checks.drops_request(request, found_on)]
            if not dropped:
                return list(requests.values())
            for query in dropped:
                campaign.add_failure(query)

    def _request_of(self, form: SearchForm, due: Due) -> Request:
        query, page, next_url = due
        url, body = (next_url, "") if next_url else form.request_of(query)
        return Request(
            url,
            method="POST" if body else "GET",
            body=body,
            headers={"Content-Type": "application/x-www-form-urlencoded"} if body else None,
            callback=self.parse_results,
            errback=self.query_failed,
            priority=QUERY_PRIORITY,
            meta={"bigcrawl_once": [form.key, query.term, *query.options, page], "verbatim_url": True},
            cb_kwargs={"form": form.key, "term": query.term, "options": [*query.options], "page": page},
        )

    def _read_results(
        self, response: TextResponse, campaign: Campaign, action: str, query: Query
    ) -> tuple[list[str], str]:
        """Return the URLs of the records on a results page, and that of the next page."""
        links = Links.from_page(response, with_anchors=True)
        if self._config().politeness.obey_nofollow and _says_nofollow(response, links):
            return [], ""
        matches = self._options.records.search if self._options.records else None
        if query.term == NO_WORD:
            return list(links.urls), ""
        here = _canonical(response.url)
        is_led_away = here.partition("?")[0] != action.partition("?")[0] and response.meta.get("redirect_urls")
        if is_led_away and host_of(here) == host_of(action):  # to the only result
            return ([here] if matches is None or matches(here) else []), ""
        next_url = _next_of(response, links)
        records = records_of(links.urls, links.anchors, action, matches)
        if matches is None:
            records = [url for url in records if url != next_url and not campaign.is_own(_key_of(url))]
        return records, next_url

    def _may_send(self, action: str, page: str) -> bool:
        """Return whether a form leads to its page's host or a rule names it, and scope and filters allow it."""
        if self._options.forms is not None and not self._names(self._options.forms, action):
            return False
        is_named = self._names(self._options.forms, action) or self._names(self._options.post, action)
        if host_of(action) != host_of(_canonical(page)) and not is_named:
            return False
        checked = link_checks_of(self.crawler).canonical_urls(Links([action], canonical=True), page)
        return bool([*checked])

    def _names(self, rule: re.Pattern[str] | None, action: str) -> bool:
        return rule is not None and rule.search(action) is not None

    async def _campaign_of(self, key: str, request: Request | None) -> Campaign | None:
        """Return the campaign of a form that any process has started, with the entries of all processes."""
        if not key:
            return None
        campaign = self._campaigns.get(key) or self._begin(key)
        await self._wait_for(campaign.refresh(), request)
        if campaign.form is None:
            self._campaigns.pop(key, None)
            return None
        return campaign

    def _begin(self, key: str) -> Campaign:
        journal = Journal(self._directory / key, self._disk)
        probes = self._options.records is None
        campaign = Campaign(journal, self._options.limits, self._options.words, probes=probes)
        self._campaigns[key] = campaign
        return campaign

    async def _once_safe(
        self, campaign: Campaign, request: Request | None, outputs: Iterable[Any]
    ) -> AsyncIterator[Any]:
        """Yield outputs of a page once the entries from which they follow are safe on disk."""
        outputs = list(outputs)
        await self._wait_for(campaign.sync(), request)
        for output in outputs:
            yield output

    async def _wait_for(self, work: Coroutine[Any, Any, T], request: Request | None) -> T:
        """Wait for the disk.

        Raises:
            FetchAbortedError: the node ends first, and the page of the request will be fetched again.
        """
        doing = asyncio.ensure_future(work)
        while not doing.done():
            is_ending = self._page_requests.are_ending
            await asyncio.wait({doing}, timeout=END_S)
            if is_ending and not doing.done():
                assert request is not None
                doing.cancel()
                raise self._page_requests.abort(request)
        return doing.result()

    @cached_property
    def _page_requests(self) -> PageRequests:
        return PageRequests(self.crawler)

    @cached_property
    def _disk(self) -> StateDisk:
        return StateDisk(self._directory)

    @property
    def _directory(self) -> Path:
        return Path(self._options.forms_dir) if self._options.forms_dir else self._config().crawl.crawl_dir / "forms"

    def _item_of(self, key: str, campaign: Campaign) -> dict[str, Any]:
        form, total = campaign.form, campaign.total()
        return {
            "form": key,
            "page": form.page if form else "",
            "action": form.action if form else "",
            "queries": campaign.queries,
            "records": campaign.found,
            "estimated": round(total.value),
            "low": round(total.low),
            "high": round(total.high) if total.high < float("inf") else None,
            "stopped": campaign.stop_reason,
        }

    def _count(self, name: str, count: int = 1) -> None:
        if self.crawler.stats is not None and count:
            self.crawler.stats.inc_value(f"forms/{name}", count)


def _next_of(response: TextResponse, links: Links) -> str:
    """Return the URL of the next page; for a form sent by POST, its query may contain the sent values."""
    found = None
    if response.request is not None and response.request.body:
        mark = "&" if "?" in response.url else "?"
        here = f"{response.url}{mark}{response.request.body.decode('ascii')}"
        found = next_page_of(here, links.urls, links.anchors)
    return found or next_page_of(response.url, links.urls, links.anchors) or ""


def _is_page(response: Response) -> TypeGuard[TextResponse]:
    return response.status == 200 and isinstance(response, TextResponse) and is_html(response)


def _key_of(url: str) -> int:
    return int(PUBLIC_KEYS.of_url(_canonical(url)))


def _record_key(url: str, form: SearchForm, term: str) -> int:
    """Return the key of a record's URL without the query's words, as in /record/7?q=honey."""
    path, _, query = url.partition("?")
    names = {form.text, *(name for name, _ in form.selects)}
    pairs = parse_qsl(query, keep_blank_values=True)
    kept = [(name, value) for name, value in pairs if name not in names and value.lower() != term.lower()]
    return _key_of(url if len(kept) == len(pairs) else f"{path}?{urlencode(kept)}" if kept else path)


def _canonical(url: str) -> str:
    try:
        return canonicalize(url)
    except UrlError:
        return ""


def _codec(charset: str) -> str:
    """Return the codec for a form's words."""
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return "utf-8"
    if name in ("ascii", "iso8859-1"):
        return "cp1252"  # as browsers read these
    return name if name in WEB_ENCODINGS and not name.startswith("utf-16") else "utf-8"


def _says_nofollow(response: Response, links: Links) -> bool:
    """Return whether a page forbids any robot to follow links."""
    said = [content for _, content in links.metas]
    said += [value.decode("latin-1") for value in response.headers.getlist("X-Robots-Tag")]
    return any(re.search(r"\b(?:nofollow|none)\b", text, re.IGNORECASE) for text in said)
