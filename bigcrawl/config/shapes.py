"""Settings as frozen dataclasses, with times in milliseconds, and what each part of bigcrawl gets of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class CloseRateConfig:
    """At less than `pages_per_s` over `span_ms` the crawl is closed; 0 pages a second: never."""

    pages_per_s: float
    span_ms: int


@dataclass(frozen=True, slots=True)
class CrawlConfig:
    """The crawl and where its state lives.

    Attributes:
        node: what this process is called in files and status.
        machine: what stays the same when the process is started again: BIGCRAWL_NODE, or the name of the host.
        report_dir: where a report is written at the end; None if none is.
        spider: the name of the spider that the process runs; empty if it runs none.
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

    @property
    def crawl_dir(self) -> Path:
        """The crawl's own directory below the state directory."""
        return self.state_dir / self.name


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """Where durable points of partitions go; `url` is None if the crawl has no store.

    `lost_partitions`: what becomes of a partition whose files are nowhere left: wait, refetch or stop.
    """

    url: str | None
    interval_ms: int
    lost_partitions: str


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """Stored pages that are read instead of fetching.

    Attributes:
        pattern: of WARC files; empty if pages are fetched.
        until: digits of a time; empty: none.
        has_all: whether the spider is given all pages, or only those that it asks for.
        concurrency: how many it is given at a time.
    """

    pattern: str
    until: str
    has_all: bool
    concurrency: int


@dataclass(frozen=True, slots=True)
class FilterConfig:
    """Where links may lead, and which links and pages are dropped; the scheduler's `rules` check the texts in it.

    Empty values drop nothing. `function` is an import path.
    """

    scope: str
    scope_list: tuple[str, ...]
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
class RevisitConfig:
    """Whether and when pages are visited again; `rule` is one of `bigcrawl.revisiting.policies`, times are seconds."""

    rule: str
    usual_s: float
    shortest_s: float
    longest_s: float
    visits_max: int


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
    link_votes: bool
    content_seen: str
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


@dataclass(frozen=True, slots=True)
class BudgetConfig:
    """What decides a PLD's budget; `budgets.policies` and `rules.budget_rules` of the scheduler check the texts in it.

    `rules` are unparsed: name -> limit -> value.
    """

    policy: str
    base: int
    top: int
    maximum: int
    rules: Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class PolitenessConfig:
    """Delays, limits, address checks, and the crawler's identity.

    The two delays `_min_ms` are lower bounds for scaling by budget; they equal the delays if nothing is scaled.
    `contact` and `mail` are empty if there is none.
    """

    host_delay_ms: int
    host_delay_min_ms: int
    host_connections: int
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
class TrapConfig:
    """Which URLs are trap-shaped, and their effect on a PLD's budget; `share` is 0 if traps are off.

    So is `mirror_share` if mirrors are not looked for.
    """

    share: float
    same_share: float
    divisor: int
    url_bytes: int
    repeats: int
    segments: int
    hops: int
    parameters: int
    wildcard_hosts: int
    mirror_share: float
    mirror_divisor: int


@dataclass(frozen=True, slots=True)
class LimitsConfig:
    """Limits on an answer, on a page's links and on the use of a connection; `answer_bytes_max` 0: no limit."""

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

    If `servers` is empty, the machine's are used. `is_proxys`: a proxy resolves the hosts of URLs. `obeys_environment`:
    fetches use the proxies that the environment names, if any.
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
    """Speed, blacklist and further delays; `politeness.speed_plan` and the scheduler's `rules` check the texts.

    A node runs `fetches_max` fetches at a time, or fewer on a congested link, down to `fetches_min`.
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
    """Where metrics are served, if they are.

    `ports` are the first and the last one that may be used; 0 and 0: any.
    """

    is_on: bool
    address: str
    ports: tuple[int, int]


@dataclass(frozen=True, slots=True)
class DashboardConfig:
    """Where the dashboard is served, if it is.

    Attributes:
        ports: the first and the last one that may be used; 0 and 0: any.
        token: what changes need; None: nothing can be changed.
        origin: scheme, name and port that a reverse proxy shows; None: there is none.
    """

    is_on: bool
    address: str
    ports: tuple[int, int]
    token: str | None = field(repr=False)
    origin: str | None

    @property
    def is_guarded(self) -> bool:
        """Whether looking needs the token too: others than the users of this machine may reach it."""
        return self.origin is not None or not ip_address(self.address).is_loopback


@dataclass(frozen=True, slots=True)
class Config:
    """All of bigcrawl's settings."""

    crawl: CrawlConfig
    store: StoreConfig
    source: SourceConfig
    filters: FilterConfig
    revisits: RevisitConfig
    frontier: FrontierConfig
    budget: BudgetConfig
    politeness: PolitenessConfig
    limits: LimitsConfig
    dns: DnsConfig
    traps: TrapConfig
    progress_ms: int
    pace: PaceConfig
    metrics: MetricsConfig
    dashboard: DashboardConfig
    alike: Mapping[str, str]
    """Settings that must be the same on all nodes, by name, without defaults; long values are cut."""
