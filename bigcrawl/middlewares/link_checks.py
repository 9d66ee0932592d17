"""Decides which links are queued: those that can be crawled, and pass scope and filters.

Links come in batches (`Links`), as a callback's Requests, and as redirects. Start requests are always in scope, but
must pass the filters. A Request with `dont_filter` passes, as it does in Scrapy.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from scrapy.utils.asyncio import run_in_thread

from bigcrawl.config import FilterConfig, read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.links import LINK_ATTRIBUTES, ON_REQUEST, PAGE_PART
from bigcrawl.scheduler.adapter.registry import frontier_of
from bigcrawl.stats_buffer import StatsBuffer
from bigcrawl.url.canonical import UrlError, canonicalize, host_of, join, refuse_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

    from bigcrawl.links import Links
    from bigcrawl.scheduler.rules.link_rules import LinkRules
    from bigcrawl.scheduler.rules.scope import CrawlScope

logger = logging.getLogger(__name__)

_HOSTS_REMEMBERED = 1 << 14
_ANY = "any"
SEEDS_METHOD = "scope_seeds"
"""The spider's method that yields the canonical URLs of its seeds; without it, its `start_urls` are the seeds."""


class LinkChecks:
    """A crawler's checks of links. Raises ConfigError for an invalid rule."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._stats_buffer = StatsBuffer(crawler)
        config = read_config(crawler.settings)
        self._url_bytes_max = config.frontier.url_bytes_max
        self._filters = config.filters
        self._rules = _rules_of(config.filters)
        self._scope: CrawlScope | None = None
        self._has_told_credentials = False

    def check_spider(self) -> None:
        """Raise ConfigError if the spider's arguments or domains are invalid."""
        wrong = getattr(self._crawler.spider, "wrong_arguments", None)
        if isinstance(wrong, ConfigError):
            raise wrong
        self._allowed_domains()

    async def prepare(self) -> None:
        """Read the scope in a thread, because many seeds take seconds. Raises ConfigError if they cannot be read."""
        frontier = frontier_of(self._crawler)
        if self._filters.scope != _ANY and frontier is not None and frontier.is_open:
            self._scope = await run_in_thread(self._make_scope)

    def canonical_urls(self, links: Links, page: str = "", *, starts: bool = False) -> Iterable[str]:
        """Return a batch's crawlable URLs in canonical form, found on `page` or start URLs; count the others."""
        allowed, against = self._allowed_domains(), self._rule_against(page, starts=starts)
        # Most batches need no change, known without reading each URL.
        is_free = links.canonical and not allowed and against is None
        if is_free and max(map(len, links.urls), default=0) <= self._url_bytes_max:
            return links.urls
        return self._crawlable_urls(links, allowed, against)

    def drops_request(self, request: Request, page: str = "", *, starts: bool = False) -> bool:
        """Return whether scope or filters drop a callback's Request or a start request (`starts`); count it if so."""
        return not request.dont_filter and self._is_dropped_by_rule(request.url, page, starts=starts)

    def drops_redirect(self, request: Request, target: str) -> bool:
        """Return whether scope or filters forbid a redirect, and count it; never for seeds and parts of pages."""
        meta = request._meta or {}
        is_seed = not meta.get("depth", 0)
        if request.dont_filter or PAGE_PART in meta or frontier_of(self._crawler) is None:
            return False
        return self._is_dropped_by_rule(target, request.url, starts=is_seed)

    def _is_dropped_by_rule(self, url: str, page: str, *, starts: bool = False) -> bool:
        against = self._rule_against(page, starts=starts)
        if against is None or (canonical := _canonical_or_none(url)) is None:
            return False
        if rule := against(canonical):
            self.count_filtered(rule)
        return bool(rule)

    def share_pld(self, url: str, other: str) -> bool:
        """Return whether two URLs, in any spelling, have the same pay-level domain; False if one cannot be crawled."""
        one, two = _canonical_or_none(url), _canonical_or_none(other)
        return one is not None and two is not None and self._pld_of(host_of(one)) == self._pld_of(host_of(two))

    def count_filtered(self, rule: str) -> None:
        self._stats_buffer.inc_value(f"bigcrawl/dropped/{rule}")

    def _rule_against(self, page: str, *, starts: bool) -> Callable[[str], str] | None:
        """Return a function that names the rule that drops a canonical URL found on `page`; None without rules."""
        rules = self._rules.dropping_rule if self._rules else None
        if starts or self._filters.scope == _ANY:
            return rules
        is_in_scope = self._in_scope().leads_from(_canonical_or_none(page) or "")
        if rules is None:
            return lambda url: "" if is_in_scope(url) else "scope"
        return lambda url: rules(url) if is_in_scope(url) else "scope"

    def _in_scope(self) -> CrawlScope:
        """Return the scope, made at its first use: PLDs are unknown until the node has joined its crawl."""
        if self._scope is None:
            self._scope = self._make_scope()
        return self._scope

    def _make_scope(self) -> CrawlScope:
        from bigcrawl.scheduler.rules.scope import LIST, CrawlScope, parse_names, seed_names

        kind, pld = self._filters.scope, self._pld_of
        is_list = kind == LIST
        names = parse_names(self._filters.scope_list) if is_list else seed_names(kind, self._canonical_seeds(), pld)
        return CrawlScope(kind, names, pld)

    def _pld_of(self, host: str) -> str:
        frontier = frontier_of(self._crawler)
        assert frontier is not None
        assert frontier.is_open, "links are found in a crawl that was joined"
        return frontier.pld_of(host)

    def _canonical_seeds(self) -> Iterator[str]:
        for seed in _seeds_of(self._crawler.spider):
            if (canonical := _canonical_or_none(seed)) is not None:
                yield canonical

    def _allowed_domains(self) -> tuple[str, ...]:
        """Return the spider's allowed domains; empty: no limit. Raises ConfigError for no collection."""
        domains = getattr(self._crawler.spider, "allowed_domains", None)
        if not domains:
            return ()
        if isinstance(domains, str | bytes) or not isinstance(domains, Iterable):
            raise ConfigError(
                f"the spider's allowed_domains is {domains!r}: it must be a list, ['a.example', 'b.example']"
            )
        return _normalize_domains(tuple(domains))

    def _crawlable_urls(
        self, links: Links, allowed: tuple[str, ...], against: Callable[[str], str] | None
    ) -> Iterator[str]:
        url_bytes_max = self._url_bytes_max
        for url in links.urls:
            if not links.canonical and links.base is None and "@" in url and self._drop_credentials(url):
                continue
            canonical = url if links.canonical else _join_canonical(url, links)
            if canonical is None:
                self._count_dropped("url")
            elif len(canonical) > url_bytes_max:
                self._count_dropped("url-too-long")
            elif self._passes_checks(canonical, allowed, against):
                yield canonical

    def _drop_credentials(self, url: str) -> bool:
        """Drop a URL of the spider that has a user or password: count it, and log the first."""
        try:
            refuse_credentials(url)
        except UrlError as error:
            if not self._has_told_credentials:
                logger.warning("dropped: %(error)s (logged once; later ones are only counted)", {"error": error})
            self._has_told_credentials = True
            self._count_dropped("url-credentials")
            return True
        return False

    def _passes_checks(self, url: str, allowed: tuple[str, ...], against: Callable[[str], str] | None) -> bool:
        """Return whether a canonical URL is within the domains and passes the rules; count it if not."""
        try:
            if allowed and not _is_within(url[: url.index("/", 8)], allowed):
                self._count_dropped("offsite")
                return False
            rule = against(url) if against is not None else ""
        except (ValueError, IndexError):  # the caller says that it is canonical, but it is not a URL
            self._count_dropped("url")
            return False
        if rule:
            self.count_filtered(rule)
        return not rule

    def _count_dropped(self, reason: str) -> None:
        self._stats_buffer.inc_value(f"bigcrawl/dropped/{reason}")


_checks: WeakKeyDictionary[Crawler, ref[LinkChecks]] = WeakKeyDictionary()


def link_checks_of(crawler: Crawler) -> LinkChecks:
    """Return the crawler's checks, which exist while one of its components keeps them. Raises as `LinkChecks`."""
    known = _checks.get(crawler)
    checks = known() if known else None
    if checks is None:
        checks = LinkChecks(crawler)
        _checks[crawler] = ref(checks)
    return checks


def check_scope(filters: FilterConfig, spider: Any) -> None:
    """Raise ConfigError if the scope's list is empty, or its seeds cannot be read on this node."""
    if filters.scope == _ANY and not filters.scope_list:
        return
    from bigcrawl.scheduler.rules.scope import LIST, OF_SEEDS, PREFIX, parse_names

    if filters.scope == LIST and not filters.scope_list:
        raise ConfigError("BIGCRAWL_SCOPE is list, and BIGCRAWL_SCOPE_LIST is empty: name the allowed targets of links")
    parse_names(filters.scope_list)
    if filters.scope in OF_SEEDS and getattr(spider, "lacks_start_requests", False):
        raise ConfigError(
            f"BIGCRAWL_SCOPE is {filters.scope}, which is derived from the seeds, but this node cannot read them: "
            f"copy their file to each node"
        )
    if filters.scope == PREFIX and next(iter(_seeds_of(spider)), None) is None:
        raise ConfigError(
            "BIGCRAWL_SCOPE is prefix, and the spider names no seeds: give it start_urls, or a method scope_seeds that "
            "yields their URLs"
        )


def check_elements(filters: FilterConfig) -> None:
    """Raise ConfigError if BIGCRAWL_LINK_ELEMENTS names an element without references."""
    if unknown := sorted(set(filters.elements) - {*LINK_ATTRIBUTES, *ON_REQUEST}):
        known = ", ".join(sorted(ON_REQUEST))
        raise ConfigError(f"BIGCRAWL_LINK_ELEMENTS has {', '.join(unknown)}; it may have {known}")


def _rules_of(filters: FilterConfig) -> LinkRules | None:
    if filters == FilterConfig():
        return None
    from bigcrawl.scheduler.rules.link_rules import LinkRules

    return LinkRules(filters)


def _seeds_of(spider: Any) -> Iterable[str]:
    method = getattr(spider, SEEDS_METHOD, None)
    return method() if method is not None else getattr(spider, "start_urls", None) or ()


def _join_canonical(url: str, links: Links) -> str | None:
    return join(links.base, url) if links.base is not None else _canonical_or_none(url)


def _canonical_or_none(url: str) -> str | None:
    try:
        return canonicalize(url, 1 << 20)
    except UrlError:
        return None


@lru_cache(1)
def _normalize_domains(domains: tuple[object, ...]) -> tuple[str, ...]:
    spelt = []
    for domain in filter(None, domains):
        try:
            spelt.append(host_of(canonicalize(f"http://{domain}/")))
        except UrlError:
            spelt.append(str(domain))
    return tuple(spelt) or ("",)


@lru_cache(_HOSTS_REMEMBERED)
def _is_within(origin: str, domains: tuple[str, ...]) -> bool:
    """Return whether the host in `origin`, a canonical URL up to its path, is one of the domains or below one."""
    host = host_of(origin + "/")
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)
