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

    A dict is a table of tables of text, numbers and the like, in JSON where it comes as text.
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
        10.0,
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
        "BIGCRAWL_BLACKLIST",
        None,
        list,
        "Hosts, pay-level domains, patterns and ranges of addresses that are not fetched: a list, or a file of them.",
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
        "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES",
        False,
        bool,
        "Fetch from loopback, private, link-local and metadata addresses; for tests and intranets.",
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
