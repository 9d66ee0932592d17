"""Installs the frontier in a crawl's settings; with a wrong setting, only an extension that ends the crawl."""

from __future__ import annotations

import importlib.util
import logging
import select
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares import cookies
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware as ScrapyMetaRefresh
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware as ScrapyRedirect
from scrapy.extensions.feedexport import FeedExporter as ScrapyFeedExporter
from scrapy.extensions.throttle import AutoThrottle
from scrapy.utils.misc import load_object
from tldextract import TLDExtract

from bigcrawl import __version__
from bigcrawl.config import BY_NAME, FilterConfig, read_config
from bigcrawl.config.contact import user_agent_with
from bigcrawl.downloads.downloader import Downloader
from bigcrawl.exceptions import ConfigError
from bigcrawl.extensions.log_formatter import LogFormatter, LogLines
from bigcrawl.extensions.progress import Progress
from bigcrawl.extensions.stop import ExitStatus, WholeStop
from bigcrawl.feature_list import modules_on
from bigcrawl.middlewares.compression import CompressionMiddleware
from bigcrawl.middlewares.link_checks import check_elements, check_scope
from bigcrawl.middlewares.links import LinksMiddleware
from bigcrawl.middlewares.other_requests import OtherRequests
from bigcrawl.middlewares.redirects import MetaRefreshMiddleware, RedirectMiddleware
from bigcrawl.pipelines.warc import WarcPipeline, usable_directory
from bigcrawl.project_settings import (
    DOWNLOAD_MAXSIZE,
    adopt_attributes,
    crawl_name_of,
    is_set,
    log_delay,
    log_unused_settings,
    with_slots,
)
from bigcrawl.scheduler.adapter.arguments import record_arguments
from bigcrawl.scheduler.adapter.early_server import plan_server
from bigcrawl.scheduler.adapter.registry import mark_failed
from bigcrawl.scheduler.adapter.values.taught_types import taught_types
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS
from bigcrawl.scheduler.budgets.policies import make_policy
from bigcrawl.scheduler.gates.passages import group_function
from bigcrawl.scheduler.gates.speed import plan_of
from bigcrawl.scheduler.rules.blacklist import parse_entries
from bigcrawl.scheduler.rules.budget_rules import parse_rules
from bigcrawl.scheduler.rules.delay_rules import parse_delays
from bigcrawl.scheduler.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from bigcrawl.config import Config, MetricsConfig, PolitenessConfig

logger = logging.getLogger(__name__)

METRICS = "bigcrawl.extensions.metrics.Metrics"
DASHBOARD = "bigcrawl.extensions.dashboard.Dashboard"
"""Loaded only if it is switched on, because it needs a package of its own."""
END_REPORT = "bigcrawl.extensions.end_report.EndReport"
"""Loaded only if it is wanted, because it imports what only commands need."""
STORED = "bigcrawl.stored.handler.install"
"""Loaded only if pages come from files."""

FEEDS = "bigcrawl.extensions.feeds.FeedExporter"
"""Loaded only if there are feeds."""
PAGE_FILTER = "bigcrawl.middlewares.page_filter.PageFilter"
SITE_PAGES = "bigcrawl.middlewares.site_pages.SitePages"
"""Loaded only if a filter, or a rule of a site, drops pages."""

_OURS: dict[str, dict[type, type | str]] = {
    "DOWNLOADER_MIDDLEWARES": {
        HttpCompressionMiddleware: CompressionMiddleware,
        ScrapyMetaRefresh: MetaRefreshMiddleware,
        ScrapyRedirect: RedirectMiddleware,
    },
    "EXTENSIONS": {ScrapyFeedExporter: FEEDS},
}


def install(settings: BaseSettings, crawler: Crawler) -> None:
    settings.setdefault_in_component_priority_dict("EXTENSIONS", ExitStatus, 500)
    settings.setdefault_in_component_priority_dict("EXTENSIONS", LogLines, 400)
    settings.setdefault_in_component_priority_dict("EXTENSIONS", WholeStop, 500)
    adopt_attributes(settings, crawler.spider or crawler.spidercls)
    if settings.get("BIGCRAWL_CRAWL") is None:
        settings.set("BIGCRAWL_CRAWL", crawl_name_of(crawler.spidercls.name), "addon")
    try:
        config = read_config(settings)
        delay_rules = with_slots(settings, config.pace.delay_rules)
        _check_settings(config, delay_rules)
        check_elements(config.filters)
        check_scope(config.filters, crawler.spider)
    except ConfigError as error:
        _log_refusal(settings, crawler, error)
        return
    for name in ("BIGCRAWL_WARC_DIR", "BIGCRAWL_HOST_DELAY"):
        if settings.get(name) is None:
            settings.set(name, BY_NAME[name].default, "addon")
    host_delay_s = config.politeness.host_delay_ms / 1000
    log_delay(settings, host_delay_s)
    log_unused_settings(settings)
    settings.set("BIGCRAWL_HOST_DELAY", host_delay_s, "addon")
    settings.set("BIGCRAWL_DELAY_RULES", delay_rules, max(settings.getpriority("BIGCRAWL_DELAY_RULES") or 0, 15))
    settings.set("DOWNLOADER", Downloader, "addon")
    settings.set("DOWNLOAD_MAXSIZE", DOWNLOAD_MAXSIZE, "addon")
    _replace_components(settings)
    _unload_throttles(settings)
    _keep_cookies_offline()
    _add_contact(settings, config.politeness)
    settings.set("CONCURRENT_ITEMS", 1, "addon")
    settings.set_in_component_priority_dict("SPIDER_MIDDLEWARES", LinksMiddleware, 10)
    if _drops_pages(config.filters):
        settings.set_in_component_priority_dict("SPIDER_MIDDLEWARES", load_object(PAGE_FILTER), 20)
    if config.filters.rules:
        settings.set_in_component_priority_dict(
            "SPIDER_MIDDLEWARES", load_object(SITE_PAGES), 5
        )  # before the frontier observes a page
    if not config.source.pattern:
        _warn_about_robots(settings, obeys=config.politeness.obey_robots)
    settings.set("ROBOTSTXT_OBEY", False, max(settings.getpriority("ROBOTSTXT_OBEY") or 0, 15))
    if config.source.pattern:
        _keep_log_short(settings, has_summary=False)
        load_object(STORED)(settings)
        return
    _install_frontier(settings, crawler, config)


def _warn_about_robots(settings: BaseSettings, *, obeys: bool) -> None:
    if not obeys:
        logger.warning("robots.txt is IGNORED: BIGCRAWL_ROBOTS says that all hosts of this crawl are yours")
    elif is_set(settings, "ROBOTSTXT_OBEY") and not settings.getbool("ROBOTSTXT_OBEY"):
        logger.warning(
            "ROBOTSTXT_OBEY = False has no effect: robots.txt is obeyed. Only %(setting)s ignores it",
            {"setting": 'BIGCRAWL_ROBOTS = "ignore-i-own-these-hosts"'},
        )


def _log_refusal(settings: BaseSettings, crawler: Crawler, error: ConfigError) -> None:
    """Log the error in one line; `ExitStatus` closes the spider. Raising here would print a traceback."""
    logger.error("%(error)s", {"error": error})
    mark_failed(crawler)
    settings.set("FEEDS", {}, "cmdline")  # do not overwrite the items of an earlier run


def _check_settings(config: Config, delay_rules: Mapping[str, Mapping[str, object]]) -> None:
    if config.budget.rules_file:
        from bigcrawl.scheduler.rules.rules_file import check_rules

        check_rules(config.budget.rules_file)
    make_policy(config.budget, EMPTY_COUNTS)
    _drops_pages(config.filters)
    parse_rules(config.budget.rules)
    if config.filters.rules:
        from bigcrawl.scheduler.rules.page_rules import parse_page_rules

        parse_page_rules(config.filters.rules)
    parse_entries(config.pace.blacklist)
    parse_delays(delay_rules)
    group_function(config.pace.group)
    taught_types(config.frontier.stored_types)
    plan_of(config.pace.speed, config.pace.time_zone)
    if config.crawl.warc_dir is not None and not config.source.pattern:
        usable_directory(config.crawl.warc_dir)
    _check_metrics_package(config.metrics)
    for module in modules_on("middlewares", config):
        if hasattr(module, "check"):
            module.check(config)


def _drops_pages(filters: FilterConfig) -> bool:
    """Return whether any filter drops pages. Raise ConfigError if any filter, of pages or links, is invalid."""
    if filters == FilterConfig():
        return False
    from bigcrawl.scheduler.rules.link_rules import LinkRules
    from bigcrawl.scheduler.rules.page_rules import PageRules

    LinkRules(filters)
    return bool(PageRules(filters))


def _check_metrics_package(metrics: MetricsConfig) -> None:
    if metrics.is_on and importlib.util.find_spec("prometheus_client") is None:
        raise ConfigError(
            'BIGCRAWL_METRICS needs the package prometheus-client, which is missing: pip install "bigcrawl[metrics]"'
        )


def _install_frontier(settings: BaseSettings, crawler: Crawler, config: Config) -> None:
    record_arguments(crawler)
    settings.set("SCHEDULER", Scheduler, "addon")
    if settings["SCHEDULER"] is Scheduler and not (config.crawl.redis_url or config.crawl.is_fresh):
        plan_server(crawler, config.crawl)
    settings.set("CONCURRENT_REQUESTS", 64, "addon")
    if importlib.util.find_spec("pycurl") and hasattr(select, "epoll"):
        for scheme in ("http", "https"):
            settings["DOWNLOAD_HANDLERS"].setdefault(scheme, "bigcrawl.downloads.http.HttpDownloadHandler")
    for module in modules_on("middlewares", config):
        for middleware, order in module.middlewares_of(config).items():
            settings.set_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", middleware, order)
    for module in modules_on("spider_middlewares", config):
        for middleware, order in module.middlewares_of(config).items():
            settings.set_in_component_priority_dict("SPIDER_MIDDLEWARES", middleware, order)
    if config.politeness.obey_robots:
        settings.set_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", OtherRequests, 100)
    if config.crawl.warc_dir is not None:
        settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", WarcPipeline, 900)
    _add_extensions(settings, config)
    _warn_about_feeds(settings)
    _keep_log_short(settings, has_summary=bool(config.progress_ms))


def _add_extensions(settings: BaseSettings, config: Config) -> None:
    extensions: list[type | str] = [Progress]
    extensions += [END_REPORT] * (config.crawl.report_dir is not None)
    extensions += [METRICS] * config.metrics.is_on
    extensions += [DASHBOARD] * config.dashboard.is_on
    for extension in extensions:
        settings.setdefault_in_component_priority_dict("EXTENSIONS", load_object(extension), 500)


def _replace_components(settings: BaseSettings) -> None:
    """Replace Scrapy's components by ours, unless the project names Scrapy's itself."""
    for name, ours in _OURS.items():
        if name == "EXTENSIONS" and not _has_feeds(settings):
            continue
        chosen = {load_object(component) for component in settings.getdict(name)}
        for scrapys in ours.keys() - chosen:
            with suppress(KeyError):
                settings.replace_in_component_priority_dict(f"{name}_BASE", scrapys, load_object(ours[scrapys]))


def _has_feeds(settings: BaseSettings) -> bool:
    return bool(settings.getdict("FEEDS") or settings.get("FEED_URI"))


def _unload_throttles(settings: BaseSettings) -> None:
    """Unload AutoThrottle and classes derived from it. Its setting stays for others to read."""
    throttles = {AutoThrottle, *map(load_object, settings.getdict("EXTENSIONS"))}
    for extension in throttles:
        if isinstance(extension, type) and issubclass(extension, AutoThrottle):
            settings.set_in_component_priority_dict("EXTENSIONS", extension, None)


def _keep_cookies_offline() -> None:
    """Make Scrapy's cookies use the installed list of public suffixes, instead of downloading one in the event loop."""
    if hasattr(cookies, "_split_domain"):
        cookies._split_domain = TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)


def _warn_about_feeds(settings: BaseSettings) -> None:
    if not _has_feeds(settings):
        return
    ours = load_object(FEEDS)
    for component, order in settings.getdict("EXTENSIONS").items():
        own = load_object(component)
        is_exporter = isinstance(own, type) and issubclass(own, ScrapyFeedExporter)
        if order is not None and is_exporter and not issubclass(own, ours):
            logger.warning(
                "feeds are written by %(own)s: kill -9 loses items of pages that count as fetched; derive it from "
                "%(ours)s, see docs/items.md",
                {"own": own.__name__, "ours": FEEDS},
            )


def _keep_log_short(settings: BaseSettings, *, has_summary: bool) -> None:
    """Omit from the log lines about single pages, and the stats that the summary shows."""
    settings.set("LOG_FORMATTER", LogFormatter, "addon")
    if has_summary:
        settings.set("STATS_DUMP", False, "addon")


def _add_contact(settings: BaseSettings, politeness: PolitenessConfig) -> None:
    """Add the contact to the user agent and a mail address to each request, unless present."""
    agent = user_agent_with(politeness.agent, politeness.contact, f"bigcrawl/{__version__}")
    if agent != politeness.agent:
        settings.set("USER_AGENT", agent, max(settings.getpriority("USER_AGENT") or 0, 15))
    headers = settings.getdict("DEFAULT_REQUEST_HEADERS")
    if politeness.mail and not any(name.lower() == "from" for name in headers):
        priority = max(settings.getpriority("DEFAULT_REQUEST_HEADERS") or 0, 15)
        settings.set("DEFAULT_REQUEST_HEADERS", {**headers, "From": politeness.mail}, priority)
