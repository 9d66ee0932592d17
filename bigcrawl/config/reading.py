"""Reads all settings into one `Config`."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bigcrawl.config.checks import to_ms
from bigcrawl.config.crawl import read_crawl
from bigcrawl.config.fetching import dns_config, host_delay, read_limits, read_pace, read_politeness
from bigcrawl.config.frontier import read_budget, read_filters, read_frontier, read_store
from bigcrawl.config.pages import read_source
from bigcrawl.config.shapes import Config
from bigcrawl.config.watching import read_dashboard, read_metrics
from bigcrawl.default_settings import BY_NAME
from bigcrawl.feature_list import modules_of
from bigcrawl.setting_values import read_values, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Mapping


# The settings of Scrapy that bigcrawl reads.
_SCRAPYS = ("CONCURRENT_REQUESTS", "DOWNLOAD_DELAY", "DOWNLOAD_MAXSIZE", "HTTPPROXY_ENABLED", "USER_AGENT")
# Settings of one process: where it finds the crawl, stores pages, and is watched. They may hold passwords.
_OWN = (
    *("CRAWL", "NODE", "REDIS_URL", "REDIS_PASSWORD_FILE", "STATE_DIR", "STORE_", "SOURCE", "WARC_", "FRESH"),
    *("CAPACITY", "PROGRESS_", "REPORT_", "METRICS", "DASHBOARD"),
)
_OF_THE_CRAWL = ("partitions", "private_suffixes", "close_when_empty", "pages_max", "close_rate")
ALIKE_CHARS_MAX = 60  # characters of a compared value; nodes report these values every second


def read_config(settings: Mapping[str, Any]) -> Config:
    """Return the checked configuration.

    Args:
        settings: a mapping such as Scrapy's Settings. Other settings than BIGCRAWL_* and those in `_SCRAPYS` are
            ignored.

    Raises:
        ConfigError: a BIGCRAWL_ name is unknown, or a value has the wrong type or is out of bounds.
    """
    refuse_unknown(settings)
    value = read_values(settings)
    concurrency = int(settings.get("CONCURRENT_REQUESTS") or 16)
    frontier = read_frontier(value, concurrency)
    has_no_limit = settings.get("CONCURRENT_REQUESTS") in (0, "0")  # in Scrapy, 0 means no limit
    return Config(
        read_crawl(value),
        read_store(value),
        read_source(value),
        read_filters(value),
        frontier,
        read_budget(value),
        read_politeness(settings, value),
        read_limits(settings, value),
        replace(dns_config(value), obeys_environment=settings.get("HTTPPROXY_ENABLED") not in (False, 0, "0", "False")),
        to_ms(value["BIGCRAWL_PROGRESS_SECONDS"]),
        read_pace(value, frontier.in_process_max if has_no_limit else concurrency),
        read_metrics(value),
        read_dashboard(value),
        _alike(settings, value),
        {type(config): config for config in (module.read(value) for module in modules_of("settings"))},
        _in_force(settings, value),
    )


def with_settings(config: Config, in_force: Mapping[str, Any]) -> Config:
    """Return the configuration for a process that shows a crawl: a node's settings, and its own paths and addresses."""
    theirs = read_config({name: value for name, value in in_force.items() if name in BY_NAME or name in _SCRAPYS})
    crawl = replace(config.crawl, **{name: getattr(theirs.crawl, name) for name in _OF_THE_CRAWL})
    return replace(
        theirs,
        crawl=crawl,
        store=config.store,
        source=config.source,
        progress_ms=config.progress_ms,
        metrics=config.metrics,
        dashboard=config.dashboard,
    )


def _in_force(settings: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: given for name in _SCRAPYS if (given := settings.get(name)) is not None}
    for name, row in BY_NAME.items():
        if value[name] != row.default and not name.removeprefix("BIGCRAWL_").startswith(_OWN):
            found[name] = value[name]
    return found


def _alike(settings: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    asked = {**value, "BIGCRAWL_HOST_DELAY": host_delay(settings, value["BIGCRAWL_HOST_DELAY"])}
    for name, row in BY_NAME.items():
        if row.alike and asked[name] != row.default and (asked[name] or row.default):
            text = json.dumps(asked[name], sort_keys=True, default=str)
            digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
            found[name] = text if len(text) <= ALIKE_CHARS_MAX else f"{text[:ALIKE_CHARS_MAX]}... ({digest})"
    return found
