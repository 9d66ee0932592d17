"""Settings as frozen dataclasses, one per part of bigcrawl; times are in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CloseRateConfig:
    """The crawl is closed if it fetches fewer than `pages_per_s` over `span_ms`; with 0, never."""

    pages_per_s: float
    span_ms: int


@dataclass(frozen=True, slots=True)
class CrawlConfig:
    """The crawl, and where its state lives.

    Attributes:
        node: the name of this process in files and status.
        machine: a name that survives a restart: BIGCRAWL_NODE, or the host's name.
        spider: empty if the process runs none.
        arguments: those of the spider that must not change during a crawl; None if they are unknown.
    """

    name: str
    node: str
    machine: str
    capacity: float
    capacity_measured: bool
    redis_url: str | None
    state_dir: Path
    warc_dir: Path | None
    warc_mode: int
    warc_sync_s: float
    warc_copies: str
    drops_copy_links: bool
    warc_indexes: tuple[str, ...]
    warc_store_url: str | None
    warc_disk_percent_max: int
    report_dir: Path | None
    partitions: int
    private_suffixes: bool
    close_when_empty: bool
    is_fresh: bool
    pages_max: int
    close_rate: CloseRateConfig
    spider: str = ""
    arguments: Mapping[str, str] | None = None

    @property
    def crawl_dir(self) -> Path:
        return self.state_dir / self.name


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Where partitions are backed up; `url` is None without a store.

    `lost_partitions` decides about a partition whose files exist nowhere: wait, refetch or stop.
    """

    url: str | None
    interval_ms: int
    lost_partitions: str


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """Stored pages that are read instead of fetching.

    Attributes:
        pattern: of WARC files; empty if pages are fetched.
        until: leading digits of a time; empty without a limit.
        has_all: give the spider all pages, not only those it requests.
    """

    pattern: str
    until: str
    has_all: bool
    concurrency: int


@dataclass(frozen=True, slots=True)
class FilterConfig:
    """Which links are followed and which pages are dropped. Empty values drop nothing; `function` is an import path."""

    scope: str
    scope_list: tuple[str, ...]
    elements: tuple[str, ...]
    schemes: tuple[str, ...]
    extensions: tuple[str, ...]
    paths: tuple[str, ...]
    directories_max: int
    characters: str
    function: str | None
    media_types: tuple[str, ...]
    strings: tuple[str, ...]
    languages: tuple[str, ...]
    head_first: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FrontierConfig:
    """Sizes and times of inbox, partitions and hot set; per crawl unless the name says otherwise."""

    url_bytes_max: int
    outbox_urls_max: int
    step_ms: int
    durable_ms: int
    redis_loss_ms: int
    hot_urls: int
    host_hot_urls: int
    priority_bias: int
    prioritizer: str
    host_records: int
    robots_bytes: int
    in_process_max: int
    lease_ms: int
    start_wait_ms: int
    deaths_max: int
    standstill_ms: int
    callbacks: tuple[str, ...]
    stored_packages: tuple[str, ...] | None
    stored_types: tuple[str, ...]
    keeps_in_memory: bool
    handled_schemes: frozenset[str]
    has_fingerprints: bool


@dataclass(frozen=True, slots=True)
class BudgetConfig:
    """How budgets of PLDs are computed. `rules` are unparsed: name -> limit -> value."""

    policy: str
    base: int
    top: int
    maximum: int
    rules: Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class PolitenessConfig:
    """Delays, limits, address checks, and the crawler's identity.

    The delays `_min_ms` are lower bounds for scaling by budget; they equal the delays if nothing is scaled.
    """

    host_delay_ms: int
    host_delay_min_ms: int
    host_connections: int
    connection_pages: int
    server_delay_ms: int
    server_delay_min_ms: int
    crawl_delay_max_ms: int
    download_factor: float
    obey_robots: bool
    robots_kept_min_ms: int
    obey_nofollow: bool
    allow_private_addresses: bool
    allow_addresses: tuple[IPv4Network | IPv6Network, ...]
    fetch_deadline_ms: int
    stop_grace_ms: int
    agent: str
    backoff_first_ms: int
    backoff_longest_ms: int
    retry_after_max_ms: int
    host_failures_max: int
    last_failures_max: int
    slow_after_ms: int
    contact: str
    mail: str
    connection_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LimitsConfig:
    """Limits on answers, on the links of a page, and on connections; `answer_bytes_max` 0 means no limit."""

    truncates: bool
    answer_bytes_max: int
    header_bytes_max: int
    headers_max: int
    decompression_ratio_max: int
    encodings_max: int
    page_bytes_max: int
    page_links_max: int
    page_link_bytes_max: int
    connection_requests_max: int
    connection_age_s: float


@dataclass(frozen=True, slots=True)
class DnsConfig:
    """How names are resolved, and how long answers are cached.

    Empty `servers` stand for the machine's. `is_proxys`: a proxy resolves the hosts of URLs. `obeys_environment`:
    fetches use the proxies that environment variables name.
    """

    servers: tuple[str, ...] = ()
    families: str = "ipv4-first"
    timeout_ms: int = 10_000
    tries: int = 4
    ttl_min_ms: int = 60_000
    ttl_max_ms: int = 86_400_000
    negative_ttl_ms: int = 300_000
    shared_answers: int = 50_000
    pld_names: int = 300
    is_proxys: bool = False
    obeys_environment: bool = True


@dataclass(frozen=True, slots=True)
class PaceConfig:
    """Speed, blacklist and further delays, mostly unparsed.

    A node runs `fetches_max` fetches at once, or fewer on a congested link, down to `fetches_min`.
    """

    speed: str
    time_zone: str
    blacklist: tuple[str, ...]
    pld_delay_ms: int
    group: str | None
    group_delay_ms: int
    fetches_min: int
    fetches_max: int
    delay_rules: Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """Where metrics are served. `ports` are the first and last to try; 0 and 0 mean any."""

    is_on: bool
    address: str
    ports: tuple[int, int]


@dataclass(frozen=True, slots=True)
class DashboardConfig:
    """Where the dashboard is served.

    Attributes:
        ports: the first and last to try; 0 and 0 mean any.
        token: required for changes; None forbids all changes.
        origin: scheme, name and port of the reverse proxy; None without one.
    """

    is_on: bool
    address: str
    ports: tuple[int, int]
    token: str | None = field(repr=False)
    origin: str | None

    @property
    def is_guarded(self) -> bool:
        """Whether reading needs the token too, because other machines may reach the dashboard."""
        return self.origin is not None or not ip_address(self.address).is_loopback


@dataclass(frozen=True, slots=True)
class Config:
    crawl: CrawlConfig
    store: StoreConfig
    source: SourceConfig
    filters: FilterConfig
    frontier: FrontierConfig
    budget: BudgetConfig
    politeness: PolitenessConfig
    limits: LimitsConfig
    dns: DnsConfig
    progress_ms: int
    pace: PaceConfig
    metrics: MetricsConfig
    dashboard: DashboardConfig
    alike: Mapping[str, str]
    """Settings that must be equal on all nodes, by name, without defaults; long values are cut."""
    features: Mapping[type, object]
    """The settings of each feature, by class."""
    in_force: Mapping[str, Any] = field(default_factory=dict)
    """All settings that a process needs to show the crawl, by name, without defaults."""

    def of(self, shape: type[T]) -> T:
        found = self.features[shape]
        assert isinstance(found, shape), "it is stored by its class"
        return found
