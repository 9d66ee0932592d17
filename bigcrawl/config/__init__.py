"""Checked settings, as frozen groups with times in milliseconds."""

from __future__ import annotations

from bigcrawl.config.crawl import CloseRateConfig, CrawlConfig, StoreConfig
from bigcrawl.config.fetching import DnsConfig, LimitsConfig, PaceConfig, PolitenessConfig
from bigcrawl.config.frontier import BudgetConfig, FilterConfig, FrontierConfig
from bigcrawl.config.pages import STAMP_DIGITS, WARC_INDEXES, SourceConfig, warc_indexes
from bigcrawl.config.reading import ALIKE_CHARS_MAX, BY_NAME, Config, read_config, read_dns, with_settings
from bigcrawl.config.watching import TOKEN_CHARS_MIN, DashboardConfig, MetricsConfig

__all__ = [
    "ALIKE_CHARS_MAX",
    "BY_NAME",
    "STAMP_DIGITS",
    "TOKEN_CHARS_MIN",
    "WARC_INDEXES",
    "BudgetConfig",
    "CloseRateConfig",
    "Config",
    "CrawlConfig",
    "DashboardConfig",
    "DnsConfig",
    "FilterConfig",
    "FrontierConfig",
    "LimitsConfig",
    "MetricsConfig",
    "PaceConfig",
    "PolitenessConfig",
    "SourceConfig",
    "StoreConfig",
    "read_config",
    "read_dns",
    "warc_indexes",
    "with_settings",
]
