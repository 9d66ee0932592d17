"""THE table of BIGCRAWL_* settings; `docs/settings.md` is checked against it.

To add one: put a row into the group of its component (groups stand in the order in which a URL meets
them), with type, unit, bounds and a meaning that a user can act on; read it in `config.py`; document
it in `docs/settings.md`. `fixed` settings are stored in the crawl record: a different value stops the
start. Settings are seconds, as Scrapy's are; the code inside uses integer milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """One row: `default` None means unset; `low` and `high` are inclusive; `choices` closes a str.

    A dict is a table of tables of text, numbers and the like, in JSON where it comes as text; a list is one of texts,
    in JSON or with commas between them where it comes as text; with `has_file`, that text is the name of a file.
    """

    name: str
    default: object
    type: type
    meaning: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    fixed: bool = False
    has_file: bool = False


SETTINGS: tuple[Setting, ...] = (
    # --- the crawl and where its state lives
    Setting(
        "BIGCRAWL_CRAWL",
        "crawl",
        str,
        "Name of the crawl; several crawls share one Redis. Letters, digits, . _ -",
    ),
    Setting(
        "BIGCRAWL_REDIS_URL",
        None,
        str,
        "redis://, rediss:// or unix:// URL of a Redis >= 7.0 or Valkey. Unset: an embedded server with its "
        "data in the state directory.",
    ),
    Setting(
        "BIGCRAWL_STATE_DIR",
        "state",
        str,
        "Directory of seen sets and queues, shared by all nodes of the crawl that run on this machine or mount it.",
    ),
    Setting(
        "BIGCRAWL_WARC_DIR",
        "warc",
        str,
        "Directory that pages are stored in as WARC files; an empty string stores none.",
    ),
    Setting("BIGCRAWL_NODE", None, str, "Name of this node in files and status. Unset: host name and process id."),
    Setting(
        "BIGCRAWL_PARTITIONS",
        256,
        int,
        "Slices of all pay-level domains; one node owns each at a time. At least twice the nodes you will ever run.",
        low=1,
        high=65_536,
        fixed=True,
    ),
    Setting(
        "BIGCRAWL_PRIVATE_SUFFIXES",
        False,
        bool,
        "Count private suffixes (github.io, blogspot.com) as public ones, so that each customer is a pay-level domain.",
        fixed=True,
    ),
    Setting(
        "BIGCRAWL_CLOSE",
        "until-empty",
        str,
        "Whether nodes close when the crawl is finished, or wait for more URLs.",
        choices=("until-empty", "forever"),
    ),
    Setting(
        "BIGCRAWL_MAX_PAGES",
        0,
        int,
        "Pages after which the whole crawl stops, resumes counted; raise it and resume to go on. 0: no limit.",
        unit="pages",
        low=0,
    ),
    # --- discovered, sent, merged
    Setting("BIGCRAWL_URL_BYTES_MAX", 8192, int, "Longer URLs are dropped and counted.", "bytes", 64, 65_536),
    Setting(
        "BIGCRAWL_OUTBOX_URLS_MAX",
        200_000,
        int,
        "URLs a node keeps that Redis has not taken yet, and URLs in the inboxes of its partitions that are not "
        "merged yet; when either is full, spiders wait and nothing is fetched.",
        "URLs",
        1_000,
        10_000_000,
    ),
    Setting(
        "BIGCRAWL_STEP_SECONDS",
        20.0,
        float,
        "Longest time discovered URLs wait for their seen check while their partition has other work.",
        "s",
        0.05,
        60,
    ),
    Setting(
        "BIGCRAWL_DURABLE_SECONDS",
        10.0,
        float,
        "How often a partition's files are forced to the disk, and what they made needless is deleted.",
        "s",
        0.5,
        600,
    ),
    # --- budgets
    Setting(
        "BIGCRAWL_BUDGET_POLICY",
        "star",
        str,
        "How many URLs of a pay-level domain pass in a turn: star, fixed, proportional, inverse, popular-only, none, "
        "or the import path of a policy of your own.",
    ),
    Setting(
        "BIGCRAWL_BUDGET",
        10,
        int,
        "URLs that pass in a turn of a pay-level domain that nothing is known of.",
        "URLs",
        1,
        1_000_000,
    ),
    Setting(
        "BIGCRAWL_BUDGET_TOP",
        10_000,
        int,
        "Ranks with more than BIGCRAWL_BUDGET, at most: the pay-level domains that most others point to.",
        "ranks",
        1,
        100_000_000,
    ),
    Setting(
        "BIGCRAWL_BUDGET_MAX",
        10_000,
        int,
        "URLs that pass in a turn of the first in rank.",
        "URLs",
        1,
        1_000_000,
    ),
    Setting(
        "BIGCRAWL_BUDGET_RULES",
        None,
        dict,
        "Limits set by hand for hosts, pay-level domains and patterns: budget, pages, bytes, depth.",
    ),
    # --- traps
    Setting(
        "BIGCRAWL_TRAPS",
        True,
        bool,
        "Lower the budget of a pay-level domain most of whose newest URLs look like those of a trap.",
    ),
    Setting(
        "BIGCRAWL_TRAP_SHARE",
        0.5,
        float,
        "Share of such URLs, among 256 new ones of a domain, from which on it is taken for a trap.",
        "of 1",
        0.01,
        1,
    ),
    Setting(
        "BIGCRAWL_TRAP_SAME_SHARE",
        0.5,
        float,
        "Share of pages that have the content of others, among 64 of a domain, from which on it is taken for a trap.",
        "of 1",
        0.01,
        1,
    ),
    Setting(
        "BIGCRAWL_TRAP_DIVISOR",
        5,
        int,
        "What the budget of such a domain is divided by; it does not fall below 1.",
        "times",
        1,
        1_000_000,
    ),
    Setting("BIGCRAWL_TRAP_URL_BYTES", 400, int, "A longer URL looks like a trap's.", "bytes", 32, 65_536),
    Setting(
        "BIGCRAWL_TRAP_REPEATS",
        3,
        int,
        "A URL looks like a trap's that has a segment of its path so many times.",
        "times",
        2,
        1_000,
    ),
    Setting(
        "BIGCRAWL_TRAP_SEGMENTS",
        12,
        int,
        "A URL looks like a trap's that has more segments in its path.",
        "segments",
        1,
        1_000,
    ),
    Setting(
        "BIGCRAWL_TRAP_HOPS",
        50,
        int,
        "A URL looks like a trap's that is farther from its start URL.",
        "hops",
        1,
        1_000_000,
    ),
    Setting(
        "BIGCRAWL_TRAP_PARAMETERS",
        4,
        int,
        "A URL looks like a trap's that has so many parameters in its query.",
        "parameters",
        1,
        1_000,
    ),
    Setting(
        "BIGCRAWL_TRAP_WILDCARD_HOSTS",
        200,
        int,
        "When so many hosts of a domain have been looked up, and DNS has an address for a made-up one, it is a trap.",
        "hosts",
        2,
        1_000_000,
    ),
    # --- the hot set in Redis
    Setting(
        "BIGCRAWL_HOT_URLS",
        50_000,
        int,
        "URLs of the whole crawl that wait in Redis, 160 to 1,060 bytes each; the others wait on disk.",
        "URLs",
        1_000,
        100_000_000,
    ),
    Setting(
        "BIGCRAWL_HOST_HOT_URLS",
        200,
        int,
        "URLs of one host that wait in Redis; the others are parked on disk.",
        "URLs",
        1,
        100_000,
    ),
    Setting(
        "BIGCRAWL_HOST_RECORDS",
        100_000,
        int,
        "Hosts whose robots rules and next allowed time stay in Redis, about 330 bytes each; a forgotten host's "
        "robots.txt is fetched again before its next page.",
        "hosts",
        1_000,
        100_000_000,
    ),
    Setting(
        "BIGCRAWL_ROBOTS_BYTES",
        64 << 20,
        int,
        "Robots rules of all hosts together that stay in Redis, packed; those of hosts beyond are on disk alone.",
        "bytes",
        1 << 20,
        1 << 33,
    ),
    # --- politeness
    Setting(
        "BIGCRAWL_HOST_DELAY",
        1.0,
        float,
        "Pause between the end of one fetch of a host and the start of the next.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_HOST_DELAY_MIN",
        0.0,
        float,
        "What the host delay is scaled down to as the budget grows, Crawl-delay kept. 0: it is not scaled.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_HOST_CONNECTIONS",
        1,
        int,
        "Connections to one host at a time, over all nodes. Above 1 the host delay is kept between starts.",
        "connections",
        1,
        64,
    ),
    Setting(
        "BIGCRAWL_SERVER_DELAY",
        0.5,
        float,
        "Pause between the starts of two fetches from one IP address, over all nodes and crawls on the Redis.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_SERVER_DELAY_MIN",
        0.0,
        float,
        "What the server delay is scaled down to as the mean budget of a server's hosts grows. 0: it is not scaled.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_PLD_DELAY",
        0.0,
        float,
        "Pause between the starts of two fetches from one pay-level domain, over all its hosts and all nodes. 0: none.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_GROUP",
        None,
        str,
        "Import path of a function (host, URL) -> text or None: URLs of one group keep BIGCRAWL_GROUP_DELAY.",
    ),
    Setting(
        "BIGCRAWL_GROUP_DELAY",
        1.0,
        float,
        "Pause between the starts of two fetches from one group, over all nodes.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_DELAY_RULES",
        None,
        dict,
        "Delays set by hand for hosts and pay-level domains: delay, pld_delay.",
    ),
    Setting(
        "BIGCRAWL_CRAWL_DELAY_MAX",
        60.0,
        float,
        "Cap on the Crawl-delay that a robots.txt asks for.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_DOWNLOAD_FACTOR",
        0.0,
        float,
        "Host delay as a multiple of the last download time, where that is more (Mercator used 10).",
        "times",
        0,
        1_000,
    ),
    Setting(
        "BIGCRAWL_SLOW_SECONDS",
        10.0,
        float,
        "A download that takes longer is slow: its host rests ten times what it took beyond, ten minutes at most, and "
        "slow hosts together have a quarter of a node's fetches. 0: none is slow.",
        "s",
        0,
        3_600,
    ),
    Setting(
        "BIGCRAWL_BACKOFF",
        10.0,
        float,
        "How long a host rests after a 429, a 503, or no answer; doubled with each further failure in a row, and "
        "lengthened by up to a half at random.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_BACKOFF_MAX",
        3_600.0,
        float,
        "Where that doubling stops.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_RETRY_AFTER_MAX",
        3_600.0,
        float,
        "Cap on the Retry-After that a 429 or 503 asks for. 0: it is not looked at.",
        "s",
        0,
        864_000,
    ),
    Setting(
        "BIGCRAWL_HOST_FAILURES_MAX",
        28,
        int,
        "Failures in a row after which a host is retired, about a day by default: its URLs are kept, and the crawl "
        "does not wait for them. 0: none is.",
        "failures",
        0,
        1_000_000,
    ),
    Setting(
        "BIGCRAWL_LAST_FAILURES_MAX",
        5,
        int,
        "The same while nothing is left but hosts that fail, so that a crawl ends some minutes after its last page, "
        "not a day. 0: as ever.",
        "failures",
        0,
        1_000_000,
    ),
    Setting(
        "BIGCRAWL_BLACKLIST",
        None,
        list,
        "Hosts, pay-level domains, patterns and ranges of addresses that are not fetched: a list, or a file of them.",
        has_file=True,
    ),
    Setting(
        "BIGCRAWL_SPEED",
        "",
        str,
        "Pages and bytes a second of the whole crawl, by time of day and weekday; empty: no limit.",
    ),
    Setting(
        "BIGCRAWL_TIME_ZONE",
        "UTC",
        str,
        "The time zone that times of day are of, a name such as Europe/Berlin.",
    ),
    Setting(
        "BIGCRAWL_ROBOTS",
        "obey",
        str,
        "robots.txt is obeyed unless this says, in full, ignore-i-own-these-hosts.",
        choices=("obey", "ignore-i-own-these-hosts"),
    ),
    Setting(
        "BIGCRAWL_ROBOTS_KEPT_MIN",
        3_600.0,
        float,
        "How long a robots.txt is kept at least, whatever its Cache-Control says; without one it is a day.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_NOFOLLOW",
        "obey",
        str,
        "Links that a page marks nofollow, by rel, robots meta element or X-Robots-Tag: left out, or followed.",
        choices=("obey", "follow"),
    ),
    Setting(
        "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES",
        False,
        bool,
        "Fetch from loopback, private, link-local and metadata addresses; for tests and intranets.",
    ),
    Setting(
        "BIGCRAWL_ALLOW_ADDRESSES",
        [],
        list,
        "Addresses and networks to fetch from although they are closed otherwise, such as 10.1.0.0/16.",
    ),
    # --- names
    Setting(
        "BIGCRAWL_DNS",
        "here",
        str,
        "Who resolves names: each node, or the proxy that all fetches go through.",
        choices=("here", "proxy"),
    ),
    Setting(
        "BIGCRAWL_DNS_SERVERS",
        [],
        list,
        "Name servers to ask: addresses, with a port where it is not 53. Empty: those of /etc/resolv.conf.",
    ),
    Setting(
        "BIGCRAWL_DNS_FAMILIES",
        "ipv4-first",
        str,
        "Which addresses of a host to use; the other family is asked for only where the first has none.",
        choices=("ipv4-first", "ipv6-first", "ipv4", "ipv6"),
    ),
    Setting("BIGCRAWL_DNS_TIMEOUT", 10.0, float, "How long a look-up may take, all its tries together.", "s", 0.1, 120),
    Setting("BIGCRAWL_DNS_TRIES", 4, int, "How often a look-up asks each name server.", "tries", 1, 10),
    Setting(
        "BIGCRAWL_DNS_TTL_MIN",
        60.0,
        float,
        "Answers are kept for at least that long, whatever their TTL.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_DNS_TTL_MAX",
        86_400.0,
        float,
        "Answers are kept for at most that long, whatever their TTL.",
        "s",
        1,
        604_800,
    ),
    Setting(
        "BIGCRAWL_DNS_NEGATIVE_TTL",
        300.0,
        float,
        "How long a name that does not exist, or has no address, is not asked for again.",
        "s",
        1,
        86_400,
    ),
    Setting(
        "BIGCRAWL_DNS_SHARED",
        50_000,
        int,
        "Answers of name servers that nodes share in Redis, some 170 bytes each; 0: each node asks for itself.",
        "answers",
        0,
        10_000_000,
    ),
    Setting(
        "BIGCRAWL_DNS_PLD_NAMES",
        300,
        int,
        "New names of one pay-level domain that are looked up a minute, times its budget over BIGCRAWL_BUDGET; the "
        "others wait. 0: no bound.",
        "names",
        0,
        1_000_000,
    ),
    # --- identity
    Setting(
        "BIGCRAWL_CONTACT",
        None,
        str,
        "A web page or mail address by which whoever is crawled can reach you. Unset: the one in USER_AGENT. Without "
        "either, no public address is fetched from.",
    ),
    # --- fetching
    Setting(
        "BIGCRAWL_IN_PROCESS_MAX",
        0,
        int,
        "URLs a node may hold taken and not acknowledged: what a kill repeats at most. 0: twice CONCURRENT_REQUESTS.",
        "URLs",
        0,
        100_000,
    ),
    Setting(
        "BIGCRAWL_FETCH_DEADLINE",
        300.0,
        float,
        "Hard end of a fetch, whatever the server does. A host whose node died is left alone that long.",
        "s",
        1,
        86_400,
    ),
    Setting(
        "BIGCRAWL_STOP_GRACE",
        4.0,
        float,
        "How long running fetches may end by themselves after a stop signal; then they are given up and requeued.",
        "s",
        0,
        3_600,
    ),
    # --- limits of an answer; how large and how long it may be is Scrapy's DOWNLOAD_MAXSIZE and DOWNLOAD_TIMEOUT
    Setting(
        "BIGCRAWL_TRUNCATE",
        True,
        bool,
        "An answer that grows beyond DOWNLOAD_MAXSIZE or lasts beyond DOWNLOAD_TIMEOUT is kept as far as it came, and "
        "marked in its flags and its WARC record; false: it fails.",
    ),
    Setting(
        "BIGCRAWL_HEADER_BYTES_MAX",
        65_536,
        int,
        "Bytes of an answer's headers, interim answers and trailers counted in; beyond them the fetch fails.",
        "bytes",
        1_024,
        300_000,
    ),
    Setting(
        "BIGCRAWL_HEADERS_MAX",
        500,
        int,
        "Header lines of an answer; beyond them the fetch fails.",
        "lines",
        8,
        5_000,
    ),
    Setting(
        "BIGCRAWL_DECOMPRESSION_RATIO_MAX",
        250,
        int,
        "Times that a body may grow when it is unpacked, once it is larger than a MiB; beyond that it is a bomb and no "
        "spider sees it.",
        "times",
        2,
        1_000_000,
    ),
    Setting(
        "BIGCRAWL_ENCODINGS_MAX",
        2,
        int,
        "Content encodings of one body, packed into each other, that are unpacked; a body with more is refused.",
        "encodings",
        1,
        10,
    ),
    Setting(
        "BIGCRAWL_CONNECTION_REQUESTS_MAX",
        1_000,
        int,
        "Requests that one connection is used for; then it is closed.",
        "requests",
        1,
        1_000_000,
    ),
    Setting(
        "BIGCRAWL_CONNECTION_AGE_MAX",
        600.0,
        float,
        "How long a connection is used for new requests.",
        "s",
        1,
        86_400,
    ),
    # --- nodes
    Setting(
        "BIGCRAWL_LEASE_SECONDS",
        30.0,
        float,
        "How long after its last sign of life a node still owns its partitions. Raise it when short pauses of a "
        "machine cost it its partitions; lower it when takeover after a node's death is too slow.",
        "s",
        2,
        3_600,
    ),
    Setting(
        "BIGCRAWL_PROGRESS_SECONDS",
        10.0,
        float,
        "Time between two lines of progress in the log; 0: none.",
        "s",
        0,
        3_600,
    ),
)

BY_NAME: dict[str, Setting] = {setting.name: setting for setting in SETTINGS}
