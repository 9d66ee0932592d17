"""Reads all settings into one `Config`."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bigcrawl.config.checks import to_ms
from bigcrawl.config.crawl import read_crawl
from bigcrawl.config.fetching import dns_config, host_delay, read_limits, read_pace, read_politeness
from bigcrawl.config.frontier import read_budget, read_filters, read_frontier, read_revisits, read_store, read_traps
from bigcrawl.config.pages import read_source
from bigcrawl.config.shapes import Config
from bigcrawl.config.watching import read_dashboard, read_metrics
from bigcrawl.default_settings import BY_NAME
from bigcrawl.setting_values import read_values, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Mapping


ALIKE_CHARS_MAX = 60  # of a compared value, which nodes report every second


def read_config(settings: Mapping[str, Any]) -> Config:
    """Return the checked configuration.

    Args:
        settings: a mapping such as Scrapy's Settings; reads BIGCRAWL_*, CONCURRENT_REQUESTS,
            DOWNLOAD_DELAY, DOWNLOAD_MAXSIZE, HTTPPROXY_ENABLED and USER_AGENT.

    Raises:
        ConfigError: an unknown BIGCRAWL_ name, or a value of the wrong type or out of bounds.
    """
    refuse_unknown(settings)
    value = read_values(settings)
    concurrency = int(settings.get("CONCURRENT_REQUESTS") or 16)
    frontier = read_frontier(value, concurrency)
    has_no_limit = settings.get("CONCURRENT_REQUESTS") in (0, "0")  # in Scrapy, 0 is no limit
    return Config(
        read_crawl(value),
        read_store(value),
        read_source(value),
        read_filters(value),
        read_revisits(value),
        frontier,
        read_budget(value),
        read_politeness(settings, value),
        read_limits(settings, value),
        replace(dns_config(value), obeys_environment=settings.get("HTTPPROXY_ENABLED") not in (False, 0, "0", "False")),
        read_traps(value),
        to_ms(value["BIGCRAWL_PROGRESS_SECONDS"]),
        read_pace(value, frontier.in_process_max if has_no_limit else concurrency),
        read_metrics(value),
        read_dashboard(value),
        _alike(settings, value),
    )


def _alike(settings: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    asked = {**value, "BIGCRAWL_HOST_DELAY": host_delay(settings, value["BIGCRAWL_HOST_DELAY"])}
    for name, row in BY_NAME.items():
        if row.alike and asked[name] != row.default and (asked[name] or row.default):
            text = json.dumps(asked[name], sort_keys=True, default=str)
            digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
            found[name] = text if len(text) <= ALIKE_CHARS_MAX else f"{text[:ALIKE_CHARS_MAX]}... ({digest})"
    return found
