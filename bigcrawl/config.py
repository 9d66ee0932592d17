"""Settings, checked, as frozen dataclasses with times in milliseconds.

Only `read_config` reads the values of BIGCRAWL_* settings. setting_values.py converts and checks each by its row in the
table; this module checks what the table cannot express.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

from bigcrawl.contact import find_contact, find_mail
from bigcrawl.default_settings import BY_NAME
from bigcrawl.exceptions import ConfigError
from bigcrawl.setting_values import read_values, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")

# Kinds of stores for WARC files, and the packages that they need besides fsspec.
_STORE_DRIVERS = {"s3": ("s3fs",), "s3a": ("s3fs",), "gs": ("gcsfs",), "gcs": ("gcsfs",), "file": ()}
WARC_INDEXES = ("cdxj", "parquet")  # values of BIGCRAWL_WARC_INDEX
STAMP_DIGITS = 14  # of a time to the second
TOKEN_CHARS_MIN = 16  # of the dashboard's token
ALIKE_CHARS_MAX = 60  # of a compared value, which nodes report every second
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


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
    """Stored pages that are read in the place of fetching.

    Attributes:
        pattern: of WARC files; empty if pages are fetched.
        until: digits of a time; empty: none.
        has_all: whether the spider is given all pages, or those that it asks for.
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


@dataclass(frozen=True, slots=True)
class TrapConfig:
    """Which URLs are trap-shaped, and their effect on a PLD's budget; `share` is 0 if traps are off."""

    share: float
    same_share: float
    divisor: int
    url_bytes: int
    repeats: int
    segments: int
    hops: int
    parameters: int
    wildcard_hosts: int


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
    frontier = _frontier(value, concurrency)
    has_no_limit = settings.get("CONCURRENT_REQUESTS") in (0, "0")  # in Scrapy, 0 is no limit
    return Config(
        _crawl(value),
        StoreConfig(
            value["BIGCRAWL_STORE_URL"] or None,
            _ms(value["BIGCRAWL_STORE_SECONDS"]),
            value["BIGCRAWL_LOST_PARTITIONS"],
        ),
        _source(value),
        _filters(value),
        _revisits(value),
        frontier,
        _budget(value),
        _politeness(settings, value),
        _limits(settings, value),
        replace(_dns(value), obeys_environment=settings.get("HTTPPROXY_ENABLED") not in (False, 0, "0", "False")),
        _traps(value),
        _ms(value["BIGCRAWL_PROGRESS_SECONDS"]),
        _pace(value, frontier.in_process_max if has_no_limit else concurrency),
        _metrics(value),
        _dashboard(value),
        _alike(settings, value),
    )


def read_dns(settings: Mapping[str, Any]) -> DnsConfig:
    """Return a resolver's settings, without checking any others.

    Raises:
        ConfigError: a value is of the wrong type or out of bounds.
    """
    return _dns(read_values(settings, "BIGCRAWL_DNS"))


def warc_indexes(kinds: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of indexes, each once.

    Raises:
        ConfigError: one is unknown, or needs a package that is missing.
    """
    for kind in kinds:
        if kind not in WARC_INDEXES:
            raise ConfigError(
                f"BIGCRAWL_WARC_INDEX has {kind!r}; it takes {' and '.join(WARC_INDEXES)}, or nothing for no index"
            )
    if "parquet" in kinds and find_spec("pyarrow") is None:
        raise ConfigError("Parquet files need pyarrow: pip install 'bigcrawl[parquet]'")
    return tuple(dict.fromkeys(kinds))


def _warc_store_url(value: Mapping[str, Any]) -> str | None:
    """Return where WARC files go once they are full; None: they stay.

    Raises:
        ConfigError: it is of no kind that we know, its package is missing, or there are no files.
    """
    url: str | None = value["BIGCRAWL_WARC_STORE_URL"] or None
    if url is None:
        return None
    if not value["BIGCRAWL_WARC_DIR"]:
        raise ConfigError("BIGCRAWL_WARC_STORE_URL needs BIGCRAWL_WARC_DIR, the directory in which files are written")
    scheme, separator, path = url.partition("://")
    if scheme not in _STORE_DRIVERS or not separator or not path.strip("/"):
        raise ConfigError(
            f"BIGCRAWL_WARC_STORE_URL is {url}; it takes s3://bucket/path, gs://bucket/path or file:///directory"
        )
    missing = [name for name in ("fsspec", *_STORE_DRIVERS[scheme]) if find_spec(name) is None]
    if missing:
        raise ConfigError(f"BIGCRAWL_WARC_STORE_URL is {url}: pip install {' '.join(missing)}")
    return url


def _crawl(value: Mapping[str, Any]) -> CrawlConfig:
    return CrawlConfig(
        name=_checked_name("BIGCRAWL_CRAWL", value["BIGCRAWL_CRAWL"]),
        node=_checked_name("BIGCRAWL_NODE", value["BIGCRAWL_NODE"] or f"{_host_name()}-{os.getpid()}"),
        machine=value["BIGCRAWL_NODE"] or _host_name(),
        capacity=value["BIGCRAWL_CAPACITY"],
        capacity_measured=value["BIGCRAWL_CAPACITY_MEASURED"],
        redis_url=_redis_url(value["BIGCRAWL_REDIS_URL"] or None, value["BIGCRAWL_REDIS_PASSWORD_FILE"] or None),
        state_dir=Path(value["BIGCRAWL_STATE_DIR"]).absolute(),
        warc_dir=Path(value["BIGCRAWL_WARC_DIR"]).expanduser().absolute() if value["BIGCRAWL_WARC_DIR"] else None,
        warc_mode=int(value["BIGCRAWL_WARC_MODE"], 8),
        warc_sync_s=value["BIGCRAWL_WARC_SYNC_SECONDS"],
        warc_copies=value["BIGCRAWL_WARC_COPIES"],
        drops_copy_links=_drops_copy_links(value),
        warc_indexes=warc_indexes(value["BIGCRAWL_WARC_INDEX"]),
        warc_store_url=_warc_store_url(value),
        warc_disk_percent_max=value["BIGCRAWL_WARC_DISK_PERCENT_MAX"],
        report_dir=Path(value["BIGCRAWL_REPORT_DIR"]).expanduser().absolute() if value["BIGCRAWL_REPORT_DIR"] else None,
        partitions=value["BIGCRAWL_PARTITIONS"],
        private_suffixes=value["BIGCRAWL_PRIVATE_SUFFIXES"],
        close_when_empty=value["BIGCRAWL_CLOSE"] == "until-empty",
        is_fresh=value["BIGCRAWL_FRESH"],
        pages_max=value["BIGCRAWL_MAX_PAGES"],
        close_rate=CloseRateConfig(value["BIGCRAWL_CLOSE_RATE"], _ms(value["BIGCRAWL_CLOSE_RATE_SPAN"])),
    )


def _source(value: Mapping[str, Any]) -> SourceConfig:
    until = value["BIGCRAWL_SOURCE_TIME"]
    if until and not (until.isascii() and until.isdigit() and 4 <= len(until) <= STAMP_DIGITS):
        raise ConfigError(
            f"BIGCRAWL_SOURCE_TIME is {until!r}; it takes the digits of a time, as 2026, 20261125 or 20261125220512"
        )
    return SourceConfig(
        value["BIGCRAWL_SOURCE"] or "",
        until,
        value["BIGCRAWL_SOURCE_PAGES"] == "all",
        value["BIGCRAWL_SOURCE_CONCURRENCY"],
    )


def _drops_copy_links(value: Mapping[str, Any]) -> bool:
    """Return whether links of copies are dropped.

    Raises:
        ConfigError: they should be, and no copies are known.
    """
    if value["BIGCRAWL_COPY_LINKS"] != "drop":
        return False
    if value["BIGCRAWL_WARC_COPIES"] != "by-reference" or not value["BIGCRAWL_WARC_DIR"]:
        raise ConfigError(
            'BIGCRAWL_COPY_LINKS is "drop", and no copies are known; set BIGCRAWL_WARC_COPIES to "by-reference" and '
            "BIGCRAWL_WARC_DIR to a directory"
        )
    return True


def _redis_url(url: str | None, password_file: str | None) -> str | None:
    """Return the URL of Redis with the password of the file, if there is one; a blank or newline at its ends is cut.

    Raises:
        ConfigError: the file cannot be read or is empty, there is no URL, or the URL has a password.
    """
    if password_file is None:
        return url
    name = "BIGCRAWL_REDIS_PASSWORD_FILE"
    try:
        password = Path(password_file).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} is {password_file!r}, a file that cannot be read: {error}") from None
    if not password:
        raise ConfigError(f"{name} is {password_file!r}, which is empty; must be a file with the password of Redis")
    scheme, separator, rest = (url or "").partition("://")
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    if not separator:
        raise ConfigError(f"{name} needs a BIGCRAWL_REDIS_URL to add the password to")
    if at and ":" in user:
        raise ConfigError(f"BIGCRAWL_REDIS_URL has a password, and {name} another one; set one of them")
    return f"{scheme}://{user}:{quote(password, safe='')}@{host}{slash}{path}"


def _filters(value: Mapping[str, Any]) -> FilterConfig:
    return FilterConfig(
        scope=value["BIGCRAWL_SCOPE"],
        scope_list=tuple(value["BIGCRAWL_SCOPE_LIST"] or ()),
        schemes=tuple(value["BIGCRAWL_FILTER_SCHEMES"] or ()),
        extensions=tuple(value["BIGCRAWL_FILTER_EXTENSIONS"] or ()),
        paths=tuple(value["BIGCRAWL_FILTER_PATHS"] or ()),
        directories_max=value["BIGCRAWL_FILTER_DIRECTORIES_MAX"],
        characters=value["BIGCRAWL_FILTER_CHARACTERS"],
        function=value["BIGCRAWL_FILTER"] or None,
        media_types=tuple(value["BIGCRAWL_FILTER_MEDIA_TYPES"] or ()),
        strings=tuple(value["BIGCRAWL_FILTER_STRINGS"] or ()),
        languages=tuple(value["BIGCRAWL_FILTER_LANGUAGES"] or ()),
        head_first=tuple(value["BIGCRAWL_HEAD_FIRST"] or ()),
    )


def _revisits(value: Mapping[str, Any]) -> RevisitConfig:
    config = RevisitConfig(
        rule=value["BIGCRAWL_REVISIT"],
        usual_s=value["BIGCRAWL_REVISIT_SECONDS"],
        shortest_s=value["BIGCRAWL_REVISIT_SECONDS_MIN"],
        longest_s=value["BIGCRAWL_REVISIT_SECONDS_MAX"],
        visits_max=value["BIGCRAWL_REVISIT_VISITS_MAX"],
    )
    if config.rule != "never" and not config.shortest_s <= config.usual_s <= config.longest_s:
        raise ConfigError(
            f"BIGCRAWL_REVISIT_SECONDS is {config.usual_s:g}; must be between BIGCRAWL_REVISIT_SECONDS_MIN, "
            f"{config.shortest_s:g}, and BIGCRAWL_REVISIT_SECONDS_MAX, {config.longest_s:g}"
        )
    return config


def _frontier(value: Mapping[str, Any], concurrency: int) -> FrontierConfig:
    return FrontierConfig(
        url_bytes_max=value["BIGCRAWL_URL_BYTES_MAX"],
        outbox_urls_max=value["BIGCRAWL_OUTBOX_URLS_MAX"],
        step_ms=_ms(value["BIGCRAWL_STEP_SECONDS"]),
        durable_ms=_ms(value["BIGCRAWL_DURABLE_SECONDS"]),
        redis_loss_ms=_ms(value["BIGCRAWL_REDIS_LOSS_SECONDS"]),
        hot_urls=value["BIGCRAWL_HOT_URLS"],
        host_hot_urls=value["BIGCRAWL_HOST_HOT_URLS"],
        priority_bias=value["BIGCRAWL_PRIORITY_BIAS"],
        prioritizer=value["BIGCRAWL_PRIORITIZER"] or "",
        link_votes=value["BIGCRAWL_LINK_VOTES"],
        content_seen=value["BIGCRAWL_CONTENT_SEEN"],
        host_records=value["BIGCRAWL_HOST_RECORDS"],
        robots_bytes=value["BIGCRAWL_ROBOTS_BYTES"],
        in_process_max=value["BIGCRAWL_IN_PROCESS_MAX"] or 3 * concurrency,
        lease_ms=_ms(value["BIGCRAWL_LEASE_SECONDS"]),
        start_wait_ms=_ms(value["BIGCRAWL_START_WAIT"]),
        deaths_max=value["BIGCRAWL_DEATHS_MAX"],
        standstill_ms=_ms(value["BIGCRAWL_STANDSTILL_SECONDS"]),
    )


def _budget(value: Mapping[str, Any]) -> BudgetConfig:
    return BudgetConfig(
        policy=value["BIGCRAWL_BUDGET_POLICY"],
        base=value["BIGCRAWL_BUDGET"],
        top=value["BIGCRAWL_BUDGET_TOP"],
        maximum=value["BIGCRAWL_BUDGET_MAX"],
        rules=value["BIGCRAWL_BUDGET_RULES"] or {},
    )


def _politeness(settings: Mapping[str, Any], value: Mapping[str, Any]) -> PolitenessConfig:
    host_delay_ms = _ms(_host_delay(settings, value["BIGCRAWL_HOST_DELAY"]))
    server_delay_ms = _ms(value["BIGCRAWL_SERVER_DELAY"])
    return PolitenessConfig(
        host_delay_ms=host_delay_ms,
        host_delay_min_ms=min(_ms(value["BIGCRAWL_HOST_DELAY_MIN"]) or host_delay_ms, host_delay_ms),
        host_connections=value["BIGCRAWL_HOST_CONNECTIONS"],
        server_delay_ms=server_delay_ms,
        server_delay_min_ms=min(_ms(value["BIGCRAWL_SERVER_DELAY_MIN"]) or server_delay_ms, server_delay_ms),
        crawl_delay_max_ms=_ms(value["BIGCRAWL_CRAWL_DELAY_MAX"]),
        download_factor=value["BIGCRAWL_DOWNLOAD_FACTOR"],
        obey_robots=value["BIGCRAWL_ROBOTS"] == "obey",
        robots_kept_min_ms=_ms(value["BIGCRAWL_ROBOTS_KEPT_MIN"]),
        obey_nofollow=value["BIGCRAWL_NOFOLLOW"] == "obey",
        allow_private_addresses=value["BIGCRAWL_ALLOW_PRIVATE_ADDRESSES"],
        allow_addresses=_networks(value),
        fetch_deadline_ms=_ms(value["BIGCRAWL_FETCH_DEADLINE"]),
        stop_grace_ms=_ms(value["BIGCRAWL_STOP_GRACE"]),
        backoff_first_ms=_ms(value["BIGCRAWL_BACKOFF"]),
        backoff_longest_ms=_ms(max(value["BIGCRAWL_BACKOFF_MAX"], value["BIGCRAWL_BACKOFF"])),
        retry_after_max_ms=_ms(value["BIGCRAWL_RETRY_AFTER_MAX"]),
        host_failures_max=value["BIGCRAWL_HOST_FAILURES_MAX"],
        last_failures_max=value["BIGCRAWL_LAST_FAILURES_MAX"],
        slow_after_ms=_ms(value["BIGCRAWL_SLOW_SECONDS"]),
        agent=(agent := str(settings.get("USER_AGENT") or "bigcrawl")),
        contact=(contact := _contact(value["BIGCRAWL_CONTACT"], agent)),
        mail=find_mail(contact, agent),
    )


def _limits(settings: Mapping[str, Any], value: Mapping[str, Any]) -> LimitsConfig:
    return LimitsConfig(
        truncates=value["BIGCRAWL_TRUNCATE"],
        answer_bytes_max=int(settings.get("DOWNLOAD_MAXSIZE") or 0),
        header_bytes_max=value["BIGCRAWL_HEADER_BYTES_MAX"],
        headers_max=value["BIGCRAWL_HEADERS_MAX"],
        decompression_ratio_max=value["BIGCRAWL_DECOMPRESSION_RATIO_MAX"],
        encodings_max=value["BIGCRAWL_ENCODINGS_MAX"],
        page_bytes_max=value["BIGCRAWL_PAGE_BYTES_MAX"],
        page_links_max=value["BIGCRAWL_PAGE_LINKS_MAX"],
        page_link_bytes_max=value["BIGCRAWL_PAGE_LINK_BYTES_MAX"],
        connection_requests_max=value["BIGCRAWL_CONNECTION_REQUESTS_MAX"],
        connection_age_s=value["BIGCRAWL_CONNECTION_AGE_MAX"],
    )


def _traps(value: Mapping[str, Any]) -> TrapConfig:
    return TrapConfig(
        share=value["BIGCRAWL_TRAP_SHARE"] if value["BIGCRAWL_TRAPS"] else 0.0,
        same_share=value["BIGCRAWL_TRAP_SAME_SHARE"],
        divisor=value["BIGCRAWL_TRAP_DIVISOR"],
        url_bytes=value["BIGCRAWL_TRAP_URL_BYTES"],
        repeats=value["BIGCRAWL_TRAP_REPEATS"],
        segments=value["BIGCRAWL_TRAP_SEGMENTS"],
        hops=value["BIGCRAWL_TRAP_HOPS"],
        parameters=value["BIGCRAWL_TRAP_PARAMETERS"],
        wildcard_hosts=value["BIGCRAWL_TRAP_WILDCARD_HOSTS"],
    )


def _networks(value: Mapping[str, Any]) -> tuple[IPv4Network | IPv6Network, ...]:
    name = "BIGCRAWL_ALLOW_ADDRESSES"
    return tuple(_checked(name, text, _network, "10.1.0.0/16") for text in value["BIGCRAWL_ALLOW_ADDRESSES"])


def _dns(value: Mapping[str, Any]) -> DnsConfig:
    name = "BIGCRAWL_DNS_SERVERS"
    servers = tuple(_checked(name, text, _server, "192.0.2.53:5353") for text in value["BIGCRAWL_DNS_SERVERS"])
    ttl_max_ms = _ms(value["BIGCRAWL_DNS_TTL_MAX"])
    return DnsConfig(
        servers=servers,
        families=value["BIGCRAWL_DNS_FAMILIES"],
        timeout_ms=_ms(value["BIGCRAWL_DNS_TIMEOUT"]),
        tries=value["BIGCRAWL_DNS_TRIES"],
        ttl_min_ms=min(_ms(value["BIGCRAWL_DNS_TTL_MIN"]), ttl_max_ms),
        ttl_max_ms=ttl_max_ms,
        negative_ttl_ms=_ms(value["BIGCRAWL_DNS_NEGATIVE_TTL"]),
        shared_answers=value["BIGCRAWL_DNS_SHARED"],
        pld_names=value["BIGCRAWL_DNS_PLD_NAMES"],
        is_proxys=value["BIGCRAWL_DNS"] == "proxy",
    )


def _pace(value: Mapping[str, Any], fetches: int) -> PaceConfig:
    return PaceConfig(
        speed=value["BIGCRAWL_SPEED"],
        time_zone=value["BIGCRAWL_TIME_ZONE"],
        blacklist=tuple(value["BIGCRAWL_BLACKLIST"] or ()),
        pld_delay_ms=_ms(value["BIGCRAWL_PLD_DELAY"]),
        group=value["BIGCRAWL_GROUP"] or None,
        group_delay_ms=_ms(value["BIGCRAWL_GROUP_DELAY"]),
        fetches_min=value["BIGCRAWL_FETCHES_MIN"] or fetches,
        fetches_max=fetches,
        delay_rules=value["BIGCRAWL_DELAY_RULES"] or {},
    )


def _metrics(value: Mapping[str, Any]) -> MetricsConfig:
    address, ports = value["BIGCRAWL_METRICS_ADDRESS"], value["BIGCRAWL_METRICS_PORT"]
    return MetricsConfig(
        is_on=value["BIGCRAWL_METRICS"],
        address=str(_checked("BIGCRAWL_METRICS_ADDRESS", address, ip_address, "127.0.0.1")),
        ports=_checked("BIGCRAWL_METRICS_PORT", ports, _ports, "9410, 9410-9429, or 0 for any"),
    )


def _dashboard(value: Mapping[str, Any]) -> DashboardConfig:
    address, ports = value["BIGCRAWL_DASHBOARD_ADDRESS"], value["BIGCRAWL_DASHBOARD_PORT"]
    origin = value["BIGCRAWL_DASHBOARD_ORIGIN"] or None
    found = DashboardConfig(
        is_on=value["BIGCRAWL_DASHBOARD"],
        address=str(_checked("BIGCRAWL_DASHBOARD_ADDRESS", address, ip_address, "127.0.0.1")),
        ports=_checked("BIGCRAWL_DASHBOARD_PORT", ports, _ports, "9430, 9430-9449, or 0 for any"),
        token=_token(value["BIGCRAWL_DASHBOARD_TOKEN"] or None, value["BIGCRAWL_DASHBOARD_TOKEN_FILE"] or None),
        origin=origin and _checked("BIGCRAWL_DASHBOARD_ORIGIN", origin, _origin, "https://crawl.example.org"),
    )
    if found.is_guarded and found.token is None:
        where = "BIGCRAWL_DASHBOARD_ORIGIN" if found.origin else "BIGCRAWL_DASHBOARD_ADDRESS"
        raise ConfigError(
            f"{where} is {found.origin or found.address}, which others may reach: set BIGCRAWL_DASHBOARD_TOKEN_FILE to "
            f"a file with a token of at least {TOKEN_CHARS_MIN} characters, e.g. of `openssl rand -hex 16`"
        )
    return found


def _token(token: str | None, file: str | None) -> str | None:
    """Return the dashboard's token. No error shows it.

    Raises:
        ConfigError: it is short or not of visible ASCII characters, the file cannot be read, or both are given.
    """
    name = "BIGCRAWL_DASHBOARD_TOKEN"
    if file is not None:
        if token is not None:
            raise ConfigError(f"{name} and {name}_FILE are both set; leave one out")
        name += "_FILE"
        try:
            token = Path(file).read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            raise ConfigError(f"{name} is {file!r}, a file that cannot be read: {error}") from None
    if token is not None and re.fullmatch(rf"[!-~]{{{TOKEN_CHARS_MIN},1000}}", token) is None:
        raise ConfigError(
            f"the token of {name} has {len(token)} characters; must be at least {TOKEN_CHARS_MIN} letters, digits and "
            f"signs without blanks, e.g. of `openssl rand -hex 16`"
        )
    return token


def _origin(text: str) -> str:
    split = urlsplit(text)
    _ = split.port
    if split.scheme not in ("http", "https") or not split.hostname or f"{split.scheme}://{split.netloc}" != text:
        raise ValueError("it is not scheme://name or scheme://name:port")
    return text.lower()


def _ports(text: str) -> tuple[int, int]:
    """Read a port, or a range of ports. Return the first and the last."""
    found = re.fullmatch(r"(\d{1,5})(?:\s*-\s*(\d{1,5}))?", text)
    if found is None:
        raise ValueError("it is neither a port nor a range")
    first, last = int(found[1]), int(found[2] or found[1])
    if not 0 <= first <= last < 65_536 or (first == 0 and last != 0):
        raise ValueError("ports are from 1 to 65535, the first before the last")
    return first, last


def _alike(settings: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    asked = {**value, "BIGCRAWL_HOST_DELAY": _host_delay(settings, value["BIGCRAWL_HOST_DELAY"])}
    for name, row in BY_NAME.items():
        if row.alike and asked[name] != row.default and (asked[name] or row.default):
            text = json.dumps(asked[name], sort_keys=True, default=str)
            digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
            found[name] = text if len(text) <= ALIKE_CHARS_MAX else f"{text[:ALIKE_CHARS_MAX]}... ({digest})"
    return found


def _checked(setting: str, text: str, read: Callable[[str], T], example: str) -> T:
    try:
        return read(text)
    except ValueError as error:
        raise ConfigError(f"{setting} has {text!r}, which cannot be read: {error}; e.g. {example}") from None


def _network(text: str) -> IPv4Network | IPv6Network:
    return ip_network(text, strict=False)


def _server(text: str) -> str:
    """Check a name server, written `address`, `address:port` or `[address]:port`. Return it in the form for c-ares."""
    bracketed = re.fullmatch(r"\[(.*)\](?::(\d{1,5}))?", text)
    plain = re.fullmatch(r"([\d.]+):(\d{1,5})", text)
    address, port = bracketed.groups() if bracketed else plain.groups() if plain else (text, None)
    found = ip_address(address)
    if port is not None and not 0 < int(port) < 65_536:
        raise ValueError(f"{port} is no port")
    host = f"[{found}]" if found.version == 6 else str(found)
    return f"{host}:{port or 53}"


def _host_delay(settings: Mapping[str, Any], host_delay: float) -> float:
    """Return the host delay in seconds. DOWNLOAD_DELAY counts if the project sets it and not BIGCRAWL_HOST_DELAY."""
    if settings.get("BIGCRAWL_HOST_DELAY") is None:
        return float(settings.get("DOWNLOAD_DELAY") or 0) or host_delay
    return host_delay


def _contact(own: str | None, agent: str) -> str:
    """Return the contact in the setting or else in the user agent; "" if there is none."""
    if own and find_contact(own) != own:
        raise ConfigError(
            f"BIGCRAWL_CONTACT is {own!r}; must be a web page or a mail address of yours, such as "
            f"https://<your site>/bot or <you>@<your site>"
        )
    return own or find_contact(agent)


def _host_name() -> str:
    return (re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()).lstrip(".-") or "node")[:60]


def _checked_name(setting: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{setting} is {name!r}; must be 1 to 100 letters, digits, dots, dashes or underscores")
    return name


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
