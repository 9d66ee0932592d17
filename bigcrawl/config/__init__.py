"""Checked settings, as frozen dataclasses with times in milliseconds.

`setting_values` checks each setting by its row in the table; this package checks rules that the table cannot express.
"""

from __future__ import annotations

from bigcrawl.config.fetching import read_dns
from bigcrawl.config.pages import STAMP_DIGITS, WARC_INDEXES, warc_indexes
from bigcrawl.config.reading import ALIKE_CHARS_MAX, read_config, with_settings
from bigcrawl.config.shapes import (
    BudgetConfig,
    CloseRateConfig,
    Config,
    CrawlConfig,
    DashboardConfig,
    DnsConfig,
    FilterConfig,
    FrontierConfig,
    LimitsConfig,
    MetricsConfig,
    PaceConfig,
    PolitenessConfig,
    SourceConfig,
    StoreConfig,
)
from bigcrawl.config.watching import TOKEN_CHARS_MIN

__all__ = [
    "ALIKE_CHARS_MAX",
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
