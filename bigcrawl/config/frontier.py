"""Settings of the frontier, its budgets and its filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from bigcrawl.setting_group import Group, seconds, setting

if TYPE_CHECKING:
    from collections.abc import Mapping


def concurrency_of(given: Mapping[str, Any]) -> int:
    return int(given["CONCURRENT_REQUESTS"] or 16)


class FilterConfig(Group):
    """Filters of links and pages. Empty values drop nothing; `function` is an import path."""

    scope: str = setting(
        "BIGCRAWL_SCOPE",
        "any",
        "Where links must lead to be followed: anywhere, to the host or the pay-level domain of their page or of a "
        "seed, below the directory of a seed, or to the targets that BIGCRAWL_SCOPE_LIST names.",
        choices=("any", "host", "pld", "prefix", "list"),
        alike=True,
        title="Scope and filters",
    )
    scope_list: tuple[str, ...] = setting(
        "BIGCRAWL_SCOPE_LIST",
        None,
        "With BIGCRAWL_SCOPE=list: hosts, pay-level domains, *. and a name, and hosts with a directory "
        "(example.com/docs/) that links may lead to: a list, or a file.",
        kind=list,
        has_file=True,
        alike=True,
    )
    schemes: tuple[str, ...] = setting(
        "BIGCRAWL_FILTER_SCHEMES",
        None,
        "Schemes of the links that are followed, of http and https. Unset: both.",
        kind=list,
        alike=True,
    )
    elements: tuple[str, ...] = setting(
        "BIGCRAWL_LINK_ELEMENTS",
        None,
        "What the spiders broad and site follow besides links to pages: img, source, srcset, embed, object, applet, "
        "script, form, xlink:href, and link for next, previous, alternate and canonical pages.",
        kind=list,
        alike=True,
    )
    extensions: tuple[str, ...] = setting(
        "BIGCRAWL_FILTER_EXTENSIONS",
        None,
        "Links whose path ends in one of these are dropped, such as pdf. non-html stands for pictures, sound, video, "
        "fonts, archives, programs and documents.",
        kind=list,
        alike=True,
    )
    paths: tuple[str, ...] = setting(
        "BIGCRAWL_FILTER_PATHS",
        None,
        "Lines as in robots.txt, for the paths and queries of links on all hosts: disallowed links are dropped. The "
        "longest line decides. A list, or a file.",
        kind=list,
        has_file=True,
        alike=True,
    )
    directories_max: int = setting(
        "BIGCRAWL_FILTER_DIRECTORIES_MAX",
        0,
        "Links with more directories in their path are dropped. 0: no limit.",
        (0, 10_000, "directories"),
        alike=True,
    )
    characters: str = setting(
        "BIGCRAWL_FILTER_CHARACTERS",
        "",
        "Links with one of these characters in their path or query are dropped: with ?; those to programs.",
        alike=True,
    )
    function: str | None = setting(
        "BIGCRAWL_FILTER",
        None,
        "Import path of a function that takes a canonical URL, and returns whether links to it are followed.",
        alike=True,
    )
    media_types: tuple[str, ...] = setting(
        "BIGCRAWL_FILTER_MEDIA_TYPES",
        None,
        "Media types whose bodies are received, such as text/html or image/*. Other answers end at their headers, and "
        "no spider sees them. Unset: all. An answer that names no type is received, and judged by its first bytes.",
        kind=list,
        alike=True,
    )
    head_first: tuple[str, ...] = setting(
        "BIGCRAWL_HEAD_FIRST",
        None,
        "Patterns of paths as in robots.txt, such as /*.pdf$: URLs that match are asked by HEAD first, in a turn of "
        "its own, and are not fetched if media type or size is not wanted.",
        kind=list,
        alike=True,
    )
    strings: tuple[str, ...] = setting(
        "BIGCRAWL_FILTER_STRINGS",
        None,
        "The spider does not see pages that contain one of these texts in their first MiB, in upper or lower case: a "
        "list, or a file.",
        kind=list,
        has_file=True,
        alike=True,
    )
    rules: Mapping[str, Mapping[str, object]] = setting(
        "BIGCRAWL_PAGE_RULES",
        None,
        "What is set by hand about pages of hosts, their directories, pay-level domains and URL patterns: kinds, media "
        "types kept if BIGCRAWL_FILTER_MEDIA_TYPES keeps them; charsets that are kept; and eliminate, texts besides "
        "BIGCRAWL_FILTER_STRINGS.",
        kind=dict,
        alike=True,
    )
    languages: tuple[str, ...] = setting(
        "BIGCRAWL_FILTER_LANGUAGES",
        None,
        "Languages of the pages that the spider sees, as in ISO 639-1: en, de. Judged by some thousand characters of a "
        "page's text; a page with hardly any passes. Needs the extra `languages`. Unset: all.",
        kind=list,
        alike=True,
    )


_BY_LINKS = ("in-degree", "rank", "quality", "changes")
"""Prioritizers that use in-degrees."""


class FrontierConfig(Group):
    """Sizes and times of inboxes, partitions and URLs in Redis, for the whole crawl unless a name says otherwise."""

    url_bytes_max: int = setting(
        "BIGCRAWL_URL_BYTES_MAX",
        8192,
        "Longer URLs are dropped and counted.",
        (64, 65_536, "bytes"),
        title="From discovery to the seen check",
    )
    link_origin: str = setting(
        "BIGCRAWL_LINK_ORIGIN",
        "auto",
        "Origin that is queued with each link, for metadata and indexes: auto, its parent page if the index parquet is "
        "made; parent, its parent page; full, also the time and the address of the parent's server.",
        choices=("auto", "parent", "full"),
        alike=True,
    )
    outbox_urls_max: int = setting(
        "BIGCRAWL_OUTBOX_URLS_MAX",
        200_000,
        "Limit on discovered URLs that Redis has not accepted yet, that wait in this node's inboxes, or that this "
        "node sent and no owner has merged. At the limit spiders wait and fetching stops.",
        (1_000, 10_000_000, "URLs"),
    )
    step_ms: int = seconds(
        "BIGCRAWL_STEP_SECONDS",
        20.0,
        "Longest time a discovered URL waits for its seen check while its partition has other work.",
        (0.05, 60),
    )
    durable_ms: int = seconds(
        "BIGCRAWL_DURABLE_SECONDS",
        10.0,
        "Time between two syncs of a partition's files. Files that are no longer needed are deleted then.",
        (0.5, 600),
    )
    redis_loss_ms: int = seconds(
        "BIGCRAWL_REDIS_LOSS_SECONDS",
        60.0,
        "How many seconds of writes Redis may lose, for instance in a failover, without losing a URL. URLs sent to "
        "Redis are kept on disk that long.",
        (2, 3_600),
    )
    hot_urls: int = setting(
        "BIGCRAWL_HOT_URLS",
        50_000,
        "URLs of the whole crawl held in Redis, 160 to 1,060 bytes each. The others wait on disk.",
        (1_000, 100_000_000, "URLs"),
        title="The hot set in Redis",
    )
    host_hot_urls: int = setting(
        "BIGCRAWL_HOST_HOT_URLS",
        200,
        "URLs of one host held in Redis. The others are parked on disk.",
        (1, 100_000, "URLs"),
    )
    front_queues: int = setting(
        "BIGCRAWL_FRONT_QUEUES",
        5,
        "Front queues on disk, one for each level of priority: the more, the finer priorities are told apart.",
        (1, 64, "queues"),
        alike=True,
    )
    priority_bias: float = setting(
        "BIGCRAWL_PRIORITY_BIAS",
        2.0,
        "While two adjacent priority levels both have URLs, the higher one gets this many times as many fetches.",
        (1, 1_000, "times"),
    )
    prioritizer: str = setting(
        "BIGCRAWL_PRIORITIZER",
        None,
        "What decides the priority of a URL besides its spider: in-degree, rank, quality, depth, another one of "
        "docs/guide/priorities.md, or the import path of a function of your own.",
        alike=True,
        read=lambda name: name or "",
    )
    host_records: int = setting(
        "BIGCRAWL_HOST_RECORDS",
        100_000,
        "Hosts whose robots rules and next fetch time stay in Redis, about 330 bytes each. A host without a record "
        "has its rules read from disk.",
        (1_000, 100_000_000, "hosts"),
    )
    robots_bytes: int = setting(
        "BIGCRAWL_ROBOTS_BYTES",
        64 << 20,
        "Memory for robots rules in Redis, all hosts together, compressed. Rules beyond that are kept on disk only.",
        (1 << 20, 1 << 33, "bytes"),
    )
    in_process_max: int = setting(
        "BIGCRAWL_IN_PROCESS_MAX",
        0,
        "URLs a node may hold that are taken and not acknowledged. This many may be fetched again after a kill. 0: "
        "three times CONCURRENT_REQUESTS.",
        (0, 100_000, "URLs"),
        title="Fetching",
    )
    lease_ms: int = seconds(
        "BIGCRAWL_LEASE_SECONDS",
        30.0,
        "How long a node owns its partitions after its last sign of life. Raise it if short pauses of a machine "
        "cost it its partitions. Lower it if takeover after a node's death is too slow.",
        (2, 3_600),
        alike=True,
        title="Nodes",
    )
    start_wait_ms: int = seconds(
        "BIGCRAWL_START_WAIT",
        60.0,
        "How long a starting node waits for Redis or for disk space before it gives up with exit status 1. 0: not "
        "at all.",
        (0, 86_400),
    )
    deaths_max: int = setting(
        "BIGCRAWL_DEATHS_MAX",
        3,
        "Node deaths after which a URL becomes a dead letter and ends unfetched, if it was in process at each, had "
        "its page, and was alone at the last. Twice as many if its page had not arrived.",
        (2, 1_000, "deaths"),
    )
    callbacks: tuple[str, ...] = setting(
        "BIGCRAWL_CALLBACKS",
        None,
        "For stored requests whose callback or errback was renamed or removed: a list of old=new gives them to another "
        "method of the spider, old= drops them, and ?= drops those that cannot be decoded. All others wait.",
        kind=list,
    )
    stored_packages: tuple[str, ...] | None = setting(
        "BIGCRAWL_STORED_PACKAGES",
        None,
        "Packages and modules whose classes and functions stored requests may name, also as the classes of their items "
        "and of the requests themselves. Unset: the packages of the spider and of SPIDER_MODULES.",
        kind=list,
        read=lambda names: None if names is None else tuple(names),
    )
    stored_types: tuple[str, ...] = setting(
        "BIGCRAWL_STORED_TYPES",
        None,
        "Further types that requests may hold: a list of class=pair, two import paths. The pair is a tuple of two "
        "functions, object -> storable values and back.",
        kind=list,
    )
    keeps_in_memory: bool = setting(
        "BIGCRAWL_NOT_STORABLE",
        "refuse",
        "What becomes of a request with a value that cannot be stored: refuse, with an error for its errback; or "
        "memory, where the value waits in this process and is lost with it.",
        choices=("refuse", "memory"),
        read="memory".__eq__,
    )
    handled_schemes: frozenset[str] = setting(
        "BIGCRAWL_HANDLED_SCHEMES",
        None,
        "Schemes beyond http, https and data of which also requests that are no start requests go to the project's "
        "download handlers, such as s3.",
        kind=list,
        alike=True,
        read=lambda schemes: frozenset(map(str.lower, schemes or ())),
    )
    has_fingerprints: bool = setting(
        "BIGCRAWL_FINGERPRINTS",
        False,
        "Whether requests to one URL are different ones if REQUEST_FINGERPRINTER_CLASS tells them apart, by "
        "their meta or headers.",
        alike=True,
    )
    standstill_ms: int = seconds(
        "BIGCRAWL_STANDSTILL_SECONDS",
        20.0,
        "How long the event loop may be blocked, for instance by an endless callback, before the watchdog logs the "
        "stack and ends the process. 0: no limit.",
        (0, 86_400),
    )

    def derive(self, given: Mapping[str, Any]) -> Self:
        return self.replace(in_process_max=self.in_process_max or 3 * concurrency_of(given))

    @property
    def counts_links(self) -> bool:
        """Whether links between PLDs must be counted, because the prioritizer may use in-degrees."""
        return self.prioritizer in _BY_LINKS or "." in self.prioritizer


class BudgetConfig(Group):
    """How budgets of PLDs are computed. `rules` are unparsed: name -> limit -> value; `rules_file` is a path."""

    policy: str = setting(
        "BIGCRAWL_BUDGET_POLICY",
        "star",
        "How many URLs of a pay-level domain pass per turn: star, fixed, proportional, inverse, popular-only, "
        "none, or the import path of your own policy.",
        alike=True,
        title="Budgets",
    )
    base: int = setting(
        "BIGCRAWL_BUDGET",
        10,
        "Budget of a pay-level domain without a rank: URLs that pass per turn.",
        (1, 1_000_000, "URLs"),
        alike=True,
    )
    top: int = setting(
        "BIGCRAWL_BUDGET_TOP",
        10_000,
        "Number of top-ranked pay-level domains (those with the most others linking to them) that may get more "
        "than BIGCRAWL_BUDGET.",
        (1, 100_000_000, "ranks"),
        alike=True,
    )
    maximum: int = setting(
        "BIGCRAWL_BUDGET_MAX",
        10_000,
        "Budget of the top-ranked pay-level domain: URLs that pass per turn.",
        (1, 1_000_000, "URLs"),
        alike=True,
    )
    rules: Mapping[str, Mapping[str, object]] = setting(
        "BIGCRAWL_BUDGET_RULES",
        None,
        "Limits set by hand for hosts, their directories, pay-level domains and URL patterns: budget, pages, bytes, "
        "depth, and also priority and revisit.",
        kind=dict,
        alike=True,
    )
    rules_file: str | None = setting(
        "BIGCRAWL_RULES",
        None,
        "A file with all that is set by hand for sites, a line for each: budgets and other limits, delays, priorities, "
        "waits between visits, kinds of pages, texts of pages to eliminate.",
    )
    in_degree_by: str = setting(
        "BIGCRAWL_IN_DEGREE",
        "pld",
        "What an in-degree counts: the pay-level domains that link to another one, or the IP addresses of the servers "
        "whose pages do. With `address`, sites of one server count once, and a farm with many addresses many times.",
        choices=("pld", "address"),
        alike=True,
    )
    units: tuple[str, ...] = setting(
        "BIGCRAWL_BUDGET_UNITS",
        None,
        "Shared domains whose hosts or directories have in-degrees and budgets of their own: *.blogs.example, "
        "www.homes.example/, private for those of the public-suffix list, or * for all hosts of all domains.",
        kind=list,
        alike=True,
    )
    unit_links: int = setting(
        "BIGCRAWL_BUDGET_UNIT_LINKS",
        10,
        "How many other pay-level domains must link to such a host or directory before it has a budget of its own.",
        (1, 1_000_000, "PLDs"),
        alike=True,
    )
