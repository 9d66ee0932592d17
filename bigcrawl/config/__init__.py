"""Settings, checked, as frozen dataclasses with times in milliseconds.

Only `read_config` reads the values of BIGCRAWL_* settings. setting_values.py converts and checks each by its row in the
table; this package checks what the table cannot express.

shapes    what comes out
reading   `read_config`
crawl, pages, frontier, fetching, watching   how each part is read
checks    what they share
"""

from __future__ import annotations

from bigcrawl.config.fetching import read_dns
from bigcrawl.config.pages import STAMP_DIGITS, WARC_INDEXES, warc_indexes
from bigcrawl.config.reading import ALIKE_CHARS_MAX, read_config
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
    RevisitConfig,
    SourceConfig,
    StoreConfig,
    TrapConfig,
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
    "RevisitConfig",
    "SourceConfig",
    "StoreConfig",
    "TrapConfig",
    "read_config",
    "read_dns",
    "warc_indexes",
]
