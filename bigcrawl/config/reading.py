"""Reads all settings into one `Config`."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Self, TypeVar

from bigcrawl.config.crawl import CloseRateConfig, CrawlConfig, StoreConfig
from bigcrawl.config.fetching import DnsConfig, LimitsConfig, PaceConfig, PolitenessConfig
from bigcrawl.config.frontier import BudgetConfig, FilterConfig, FrontierConfig
from bigcrawl.config.pages import SourceConfig
from bigcrawl.config.values import PREFIX, read_value, refuse_unknown
from bigcrawl.config.watching import DashboardConfig, MetricsConfig
from bigcrawl.feature_list import modules_of
from bigcrawl.setting_group import Group, derived, nested_group, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bigcrawl.table_rows import Setting

T = TypeVar("T")

# The settings of Scrapy that bigcrawl reads.
_SCRAPYS = ("CONCURRENT_REQUESTS", "DOWNLOAD_DELAY", "DOWNLOAD_MAXSIZE", "HTTPPROXY_ENABLED", "USER_AGENT")
# Settings of one process: where it finds the crawl, stores pages, and is watched. They may hold passwords.
_OWN = (
    *("NODE", "REDIS_URL", "REDIS_PASSWORD_FILE", "STATE_DIR", "STORE_", "SOURCE", "WARC_", "FRESH"),
    *("RULES", "CAPACITY", "PROGRESS_", "REPORT_", "METRICS", "DASHBOARD"),
)
_OF_THE_CRAWL = ("partitions", "private_suffixes", "close_when_empty", "pages_max")
ALIKE_CHARS_MAX = 60  # characters of a compared value; nodes report these values every second


class _FeatureSettings:
    @staticmethod
    def rows() -> Iterator[tuple[str, Setting]]:
        for module in modules_of("settings"):
            yield from module.CONFIG.rows()

    @staticmethod
    def read(given: Mapping[str, Any]) -> dict[type, object]:
        return {module.CONFIG: module.CONFIG.read(given) for module in modules_of("settings")}


class Config(Group):
    """All settings.

    Attributes:
        features: the features' groups, by class.
        alike: settings that must be equal on all nodes, except defaults, cut if long.
        in_force: non-default settings that a process needs to show the crawl.
    """

    crawl: CrawlConfig = nested_group(CrawlConfig)
    close_rate: CloseRateConfig = nested_group(CloseRateConfig)
    store: StoreConfig = nested_group(StoreConfig)
    source: SourceConfig = nested_group(SourceConfig)
    filters: FilterConfig = nested_group(FilterConfig)
    frontier: FrontierConfig = nested_group(FrontierConfig)
    budget: BudgetConfig = nested_group(BudgetConfig)
    features: Mapping[type, object] = nested_group(_FeatureSettings)
    politeness: PolitenessConfig = nested_group(PolitenessConfig)
    pace: PaceConfig = nested_group(PaceConfig)
    dns: DnsConfig = nested_group(DnsConfig)
    limits: LimitsConfig = nested_group(LimitsConfig)
    progress_ms: int = seconds(
        "BIGCRAWL_PROGRESS_SECONDS",
        60.0,
        "Time between two progress lines in the log. 0: none.",
        (0, 3_600),
        title="Nodes",
    )
    metrics: MetricsConfig = nested_group(MetricsConfig)
    dashboard: DashboardConfig = nested_group(DashboardConfig)
    alike: Mapping[str, str] = derived()
    in_force: Mapping[str, Any] = derived()

    def derive(self, given: Mapping[str, Any]) -> Self:
        return self.replace(alike=_settings_alike_on_all_nodes(given), in_force=_in_force(given))

    def feature_config(self, shape: type[T]) -> T:
        found = self.features[shape]
        assert isinstance(found, shape), "it is stored by its class"
        return found


BY_NAME: Mapping[str, Setting] = {row.name: row for _, row in Config.rows()}


def read_config(settings: Mapping[str, Any]) -> Config:
    """Return the checked configuration.

    Args:
        settings: such as Scrapy's; others than BIGCRAWL_* and those in `_SCRAPYS` are ignored.

    Raises:
        ConfigError: a BIGCRAWL_ name is unknown, or a value has the wrong type or is out of bounds.
    """
    refuse_unknown(settings, BY_NAME)
    return Config.read(_checked_values(settings, BY_NAME.values()))


def read_dns(settings: Mapping[str, Any]) -> DnsConfig:
    """Return the DNS settings, without checking others."""
    return DnsConfig.read(_checked_values(settings, (row for _, row in DnsConfig.rows())))


def with_settings(config: Config, in_force: Mapping[str, Any]) -> Config:
    """Return the configuration of a process that shows a crawl: the node's settings with this process's paths."""
    theirs = read_config({name: value for name, value in in_force.items() if name in BY_NAME or name in _SCRAPYS})
    return theirs.replace(
        crawl=config.crawl.replace(**{name: getattr(theirs.crawl, name) for name in _OF_THE_CRAWL}),
        **{name: getattr(config, name) for name in ("store", "source", "progress_ms", "metrics", "dashboard")},
    )


def _checked_values(settings: Mapping[str, Any], rows: Iterable[Setting]) -> dict[str, Any]:
    """Return the checked values of settings; DOWNLOAD_DELAY stands in for an unset BIGCRAWL_HOST_DELAY."""
    given = {name: settings.get(name) for name in _SCRAPYS}
    given |= {row.name: read_value(row, settings.get(row.name)) for row in rows}
    if path := given.get("BIGCRAWL_RULES"):
        from bigcrawl.config.rules_file import with_rules

        given = with_rules(path, given)
    if settings.get("BIGCRAWL_HOST_DELAY") is None and (delay := float(given["DOWNLOAD_DELAY"] or 0)):
        given["BIGCRAWL_HOST_DELAY"] = delay
    return given


def _in_force(given: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: given[name] for name in _SCRAPYS if given[name] is not None}
    for name, row in BY_NAME.items():
        is_own = name == "BIGCRAWL_CRAWL" or name.removeprefix(PREFIX).startswith(_OWN)
        if given[name] != row.default and not is_own:
            found[name] = given[name]
    return found


def _settings_alike_on_all_nodes(given: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for name, row in BY_NAME.items():
        value = given[name]
        if row.alike and value != row.default and (value or row.default):
            text = json.dumps(value, sort_keys=True, default=str)
            digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
            found[name] = text if len(text) <= ALIKE_CHARS_MAX else f"{text[:ALIKE_CHARS_MAX]}... ({digest})"
    return found
