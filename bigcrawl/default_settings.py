"""THE table of BIGCRAWL_* settings; `make docs` writes `docs/settings.md` from it.

Features have theirs in a module `settings`. To add one, put a row into the group of its component, with type, unit,
bounds and a meaning that a user can act on. Groups follow the order in which a URL meets them. Read the setting in
`config/`, run `make docs`, and say on the page when to change it. Nothing else reads BIGCRAWL_* settings.

A `fixed` setting is stored in the crawl record; a node with another value does not start. An `alike` setting must be
the same on all live nodes, because one node with another value breaks a promise; such a node does not start either.
Times are seconds, as in Scrapy; the code uses integer milliseconds.
"""

from __future__ import annotations

from bigcrawl.feature_list import modules_of
from bigcrawl.table_rows import Setting

# A string is the title of the group that follows.
TABLE: tuple[Setting | str, ...] = (
    "The crawl and where its state lives",
    Setting(
        "BIGCRAWL_CRAWL",
        "crawl",
        str,
        "Name of the crawl. Several crawls can share one Redis. Letters, digits, . _ -",
    ),
    Setting(
        "BIGCRAWL_REDIS_URL",
        None,
        str,
        "redis://, rediss:// or unix:// URL of a Redis >= 7.0 or Valkey, of any master of a Redis Cluster, or "
        "redis+sentinel:// URL of its sentinels. Unset: bigcrawl starts an embedded server with its data in the "
        "state directory.",
    ),
    Setting(
        "BIGCRAWL_REDIS_PASSWORD_FILE",
        None,
        str,
        "File that holds the password of Redis, and nothing else. It is added to BIGCRAWL_REDIS_URL, which then has "
        "none.",
    ),
    Setting(
        "BIGCRAWL_STATE_DIR",
        "state",
        str,
        "Directory of seen sets and queues, shared by all nodes of the crawl. With BIGCRAWL_STORE_URL, each node has "
        "its own.",
    ),
    Setting(
        "BIGCRAWL_STORE_URL",
        None,
        str,
        "s3://, gs:// or file:// URL of a store that all nodes can reach. Durable points of partitions go there, so "
        "nodes need no shared disk. Needs the extra `store`. Unset: the state directory alone.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_STORE_SECONDS",
        60.0,
        float,
        "Time between two durable points of a partition in the store. Each costs a write request, so 256 partitions "
        "that change all the time make 370,000 a day.",
        "s",
        1,
        3_600,
    ),
    Setting(
        "BIGCRAWL_LOST_PARTITIONS",
        "wait",
        str,
        "What to do if neither the disk nor the store has the files of a partition that was in use: set it apart until "
        "they are back, while the others go on; begin it anew, so that its pages are fetched again as links to them "
        "are found, and its waiting URLs are lost; or stop with an error.",
        choices=("wait", "refetch", "stop"),
    ),
    Setting(
        "BIGCRAWL_WARC_DIR",
        "warc",
        str,
        "Directory for WARC files. An empty string stores no pages.",
    ),
    Setting(
        "BIGCRAWL_WARC_MODE",
        "600",
        str,
        "Permissions of WARC files, as in chmod: 600 for the owner only, 640 for the group too, 644 for everybody.",
        choices=("600", "640", "644"),
    ),
    Setting(
        "BIGCRAWL_WARC_SYNC_SECONDS",
        0.1,
        float,
        "Time between two syncs of the pages written so far. A page counts as fetched once it is synced. 0: sync "
        "only when a file is full.",
        "s",
        low=0,
        high=60,
    ),
    Setting(
        "BIGCRAWL_WARC_COPIES",
        "whole",
        str,
        "A page with the body of another that this node stored lately is stored whole; or by reference, as a `revisit` "
        "record with its own headers, and with address, date and record id of the other. See docs/copies.md.",
        choices=("whole", "by-reference"),
    ),
    Setting(
        "BIGCRAWL_COPY_LINKS",
        "follow",
        str,
        "Whether links on a page with the body of another page of its pay-level domain are followed or dropped. Such "
        'pages are recognised only with `BIGCRAWL_WARC_COPIES = "by-reference"`.',
        choices=("follow", "drop"),
    ),
    Setting(
        "BIGCRAWL_WARC_INDEX",
        ["cdxj"],
        list,
        "Indexes that are made of each WARC file once it is full: cdxj, with which pages are found and replayed; "
        "parquet, a table for questions about the crawl, which needs the extra bigcrawl[parquet]. An empty list: none.",
    ),
    Setting(
        "BIGCRAWL_WARC_STORE_URL",
        None,
        str,
        "s3://bucket/path, gs://bucket/path or file:///directory, where WARC files and their indexes are moved once "
        "they are full. Unset: they stay in BIGCRAWL_WARC_DIR.",
    ),
    Setting(
        "BIGCRAWL_WARC_DISK_PERCENT_MAX",
        70,
        int,
        "How full the disk of BIGCRAWL_WARC_DIR may be while WARC files wait for BIGCRAWL_WARC_STORE_URL. Beyond that "
        "the crawl pauses until there is room or all are in the store.",
        "%",
        low=1,
        high=100,
    ),
    Setting(
        "BIGCRAWL_NODE",
        None,
        str,
        "Name of this node in files and status. A node that is started again under its name gets its partitions "
        "back. Unset: host name and process id in files and status, the host name for partitions.",
    ),
    Setting(
        "BIGCRAWL_CAPACITY",
        1.0,
        float,
        "Share of the partitions that this node owns, relative to the other nodes. A node with 2 owns twice as many "
        "as one with 1.",
        low=0.01,
        high=1_000,
    ),
    Setting(
        "BIGCRAWL_CAPACITY_MEASURED",
        False,
        bool,
        "Whether this node owns fewer partitions while it is behind with its hosts and other nodes are not.",
    ),
    Setting(
        "BIGCRAWL_PARTITIONS",
        256,
        int,
        "Number of slices that pay-level domains are divided into. Each is owned by one node at a time. A node has its "
        "share to less than one of them: use twenty times the nodes you will ever run, so that shares are within 5 %.",
        low=1,
        high=65_536,
        fixed=True,
    ),
    Setting(
        "BIGCRAWL_PRIVATE_SUFFIXES",
        False,
        bool,
        "Treat private suffixes (github.io, blogspot.com) as public suffixes, so that each customer is a pay-level "
        "domain.",
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
        "BIGCRAWL_FRESH",
        False,
        bool,
        "Start the crawl over: delete its state at the start. Pages and feeds stay.",
    ),
    Setting(
        "BIGCRAWL_MAX_PAGES",
        0,
        int,
        "Pages after which the whole crawl stops, earlier runs included. Raise it to go on. 0: no limit.",
        unit="pages",
        low=0,
    ),
    Setting(
        "BIGCRAWL_CLOSE_RATE",
        0.0,
        float,
        "The crawl is closed, as by Ctrl-C on every node, if all nodes together fetch fewer pages a second than this "
        "over BIGCRAWL_CLOSE_RATE_SPAN while URLs wait; the same command goes on. Pauses and lower speeds do not "
        "count. 0: never.",
        "pages a second",
        0,
        1e6,
    ),
    Setting(
        "BIGCRAWL_CLOSE_RATE_SPAN",
        1_800.0,
        float,
        "Time over which the rate for BIGCRAWL_CLOSE_RATE is taken. Raise it if the crawl is closed while many hosts "
        "rest.",
        "s",
        5,
        604_800,
    ),
    "Stored pages as a source",
    Setting(
        "BIGCRAWL_SOURCE",
        None,
        str,
        "Pattern of WARC files, such as warc/*.warc.gz, or a directory of them. The spider then runs over the pages "
        "stored there, and nothing is fetched. Unset: pages are fetched. See docs/guide/stored-pages.md.",
    ),
    Setting(
        "BIGCRAWL_SOURCE_TIME",
        "",
        str,
        "Digits of a time (UTC), as 2026, 20261125 or 20261125220512: each URL's last answer until then is taken. "
        "Empty: the last one.",
    ),
    Setting(
        "BIGCRAWL_SOURCE_PAGES",
        "asked",
        str,
        "Which stored pages the spider is given: those that it asks for, from its start requests on; or all, those "
        "that it has not asked for to its `parse`.",
        choices=("asked", "all"),
    ),
    Setting(
        "BIGCRAWL_SOURCE_CONCURRENCY",
        1,
        int,
        "How many stored pages the spider and its pipelines work on at a time. 1 keeps the order of the crawl; more is "
        "faster only if they wait for something.",
        "pages",
        low=1,
        high=1_000,
    ),
    "Scope and filters",
    Setting(
        "BIGCRAWL_SCOPE",
        "any",
        str,
        "Where links must lead to be followed: anywhere, to the host or the pay-level domain of their page or of a "
        "seed, below the directory of a seed, or to what BIGCRAWL_SCOPE_LIST names.",
        choices=("any", "host", "pld", "prefix", "list"),
        alike=True,
    ),
    Setting(
        "BIGCRAWL_SCOPE_LIST",
        None,
        list,
        "With BIGCRAWL_SCOPE=list: hosts, pay-level domains, *. and a name, and hosts with a directory "
        "(example.com/docs/) that links may lead to: a list, or a file.",
        has_file=True,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_FILTER_SCHEMES",
        None,
        list,
        "Schemes of the links that are followed, of http and https. Unset: both.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_LINK_ELEMENTS",
        None,
        list,
        "What the spiders broad and site follow besides links to pages: img, source, srcset, embed, object, applet, "
        "script, form, xlink:href, and link for next, previous, alternate and canonical pages.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_FILTER_EXTENSIONS",
        None,
        list,
        "Links whose path ends in one of these are dropped, such as pdf. non-html stands for pictures, sound, video, "
        "fonts, archives, programs and documents.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_FILTER_PATHS",
        None,
        list,
        "Lines as in robots.txt, for the paths and queries of links on all hosts: what they disallow is dropped. The "
        "longest line decides. A list, or a file.",
        has_file=True,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_FILTER_DIRECTORIES_MAX",
        0,
        int,
        "Links with more directories in their path are dropped. 0: no limit.",
        "directories",
        0,
        10_000,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_FILTER_CHARACTERS",
        "",
        str,
        "Links with one of these characters in their path or query are dropped: with ?; those to programs.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_FILTER",
        None,
        str,
        "Import path of a function that takes a canonical URL, and returns whether links to it are followed.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_FILTER_MEDIA_TYPES",
        None,
        list,
        "Media types whose bodies are received, such as text/html or image/*. Other answers end at their headers, and "
        "no spider sees them. Unset: all. An answer that names no type is received, and judged by its first bytes.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_HEAD_FIRST",
        None,
        list,
        "Patterns of paths as in robots.txt, such as /*.pdf$: URLs that match are asked by HEAD first, in a turn of "
        "its own, and are not fetched if media type or size is not wanted.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_FILTER_STRINGS",
        None,
        list,
        "The spider does not see pages that contain one of these texts in their first MiB, in upper or lower case: a "
        "list, or a file.",
        has_file=True,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_FILTER_LANGUAGES",
        None,
        list,
        "Languages of the pages that the spider sees, as in ISO 639-1: en, de. Judged by some thousand characters of a "
        "page's text; a page with hardly any passes. Needs the extra `languages`. Unset: all.",
        alike=True,
    ),
    "From discovery to the seen check",
    Setting("BIGCRAWL_URL_BYTES_MAX", 8192, int, "Longer URLs are dropped and counted.", "bytes", 64, 65_536),
    Setting(
        "BIGCRAWL_OUTBOX_URLS_MAX",
        200_000,
        int,
        "Limit on discovered URLs that Redis has not accepted yet, that wait in this node's inboxes, or that this "
        "node sent and no owner has merged. At the limit spiders wait and fetching stops.",
        "URLs",
        1_000,
        10_000_000,
    ),
    Setting(
        "BIGCRAWL_STEP_SECONDS",
        20.0,
        float,
        "Longest time a discovered URL waits for its seen check while its partition has other work.",
        "s",
        0.05,
        60,
    ),
    Setting(
        "BIGCRAWL_DURABLE_SECONDS",
        10.0,
        float,
        "Time between two syncs of a partition's files. Files that are no longer needed are deleted then.",
        "s",
        0.5,
        600,
    ),
    Setting(
        "BIGCRAWL_REDIS_LOSS_SECONDS",
        60.0,
        float,
        "How many seconds of writes Redis may lose, for instance in a failover, without losing a URL. URLs sent to "
        "Redis are kept on disk that long.",
        "s",
        2,
        3_600,
    ),
    "Budgets",
    Setting(
        "BIGCRAWL_BUDGET_POLICY",
        "star",
        str,
        "How many URLs of a pay-level domain pass per turn: star, fixed, proportional, inverse, popular-only, "
        "none, or the import path of your own policy.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_BUDGET",
        10,
        int,
        "Budget of a pay-level domain without a rank: URLs that pass per turn.",
        "URLs",
        1,
        1_000_000,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_BUDGET_TOP",
        10_000,
        int,
        "Number of top-ranked pay-level domains (those with the most others linking to them) that may get more "
        "than BIGCRAWL_BUDGET.",
        "ranks",
        1,
        100_000_000,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_BUDGET_MAX",
        10_000,
        int,
        "Budget of the top-ranked pay-level domain: URLs that pass per turn.",
        "URLs",
        1,
        1_000_000,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_BUDGET_RULES",
        None,
        dict,
        "Limits set by hand for hosts, pay-level domains and URL patterns: budget, pages, bytes, depth.",
        alike=True,
    ),
    *(row for module in modules_of("settings") for row in module.SETTINGS),
    "The hot set in Redis",
    Setting(
        "BIGCRAWL_HOT_URLS",
        50_000,
        int,
        "URLs of the whole crawl held in Redis, 160 to 1,060 bytes each. The others wait on disk.",
        "URLs",
        1_000,
        100_000_000,
    ),
    Setting(
        "BIGCRAWL_HOST_HOT_URLS",
        200,
        int,
        "URLs of one host held in Redis. The others are parked on disk.",
        "URLs",
        1,
        100_000,
    ),
    Setting(
        "BIGCRAWL_PRIORITY_BIAS",
        2,
        int,
        "While two adjacent priority levels both have URLs, the higher one gets this many times as many fetches.",
        "times",
        1,
        1_000,
    ),
    Setting(
        "BIGCRAWL_PRIORITIZER",
        None,
        str,
        "What decides the priority of a URL besides its spider: in-degree, rank, quality, depth, another one of "
        "docs/guide/priorities.md, or the import path of a function of your own.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_HOST_RECORDS",
        100_000,
        int,
        "Hosts whose robots rules and next fetch time stay in Redis, about 330 bytes each. A host without a record "
        "has its rules read from disk.",
        "hosts",
        1_000,
        100_000_000,
    ),
    Setting(
        "BIGCRAWL_ROBOTS_BYTES",
        64 << 20,
        int,
        "Memory for robots rules in Redis, all hosts together, compressed. Rules beyond that are kept on disk only.",
        "bytes",
        1 << 20,
        1 << 33,
    ),
    "Politeness",
    Setting(
        "BIGCRAWL_HOST_DELAY",
        1.0,
        float,
        "Pause between the end of a fetch from a host and the start of the next.",
        "s",
        0,
        86_400,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_HOST_DELAY_MIN",
        0.0,
        float,
        "Lower bound of the host delay, which shrinks as the domain's budget grows. Crawl-delay still applies. 0: "
        "no scaling.",
        "s",
        0,
        86_400,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_HOST_CONNECTIONS",
        1,
        int,
        "Concurrent connections to one host, over all nodes. Above 1, the host delay runs from start to start.",
        "connections",
        1,
        64,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_CONNECTION_PAGES",
        1,
        int,
        "Pages of a host fetched one after the other over a connection that it keeps, before the host delay. Where "
        "robots.txt has a Crawl-delay, and after failures, it is 1.",
        "pages",
        1,
        1_000,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_SERVER_DELAY",
        0.5,
        float,
        "Pause between the starts of two fetches from one IP address, over all nodes and all crawls on the Redis.",
        "s",
        0,
        86_400,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_SERVER_DELAY_MIN",
        0.0,
        float,
        "Lower bound of the server delay, which shrinks as the mean budget of the server's domains grows. 0: no "
        "scaling.",
        "s",
        0,
        86_400,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_PLD_DELAY",
        0.0,
        float,
        "Pause between the starts of two fetches from one pay-level domain, over all its hosts and all nodes. 0: "
        "no pause.",
        "s",
        0,
        86_400,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_GROUP",
        None,
        str,
        "Import path of a function (host, URL) -> group name or None. Fetches of one group keep BIGCRAWL_GROUP_DELAY.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_GROUP_DELAY",
        1.0,
        float,
        "Pause between the starts of two fetches of one group, over all nodes.",
        "s",
        0,
        86_400,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_DELAY_RULES",
        None,
        dict,
        "Delays set by hand for hosts and pay-level domains: delay, pld_delay.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_CRAWL_DELAY_MAX",
        60.0,
        float,
        "Cap on the Crawl-delay of a robots.txt.",
        "s",
        0,
        86_400,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_DOWNLOAD_FACTOR",
        0.0,
        float,
        "Host delay as a multiple of the last download time, where that is longer (Mercator used 10). 0: off.",
        "times",
        0,
        1_000,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_SLOW_SECONDS",
        10.0,
        float,
        "A download that takes longer is slow. Its host then rests for ten times the excess, at most ten minutes. "
        "Slow hosts share a quarter of a node's fetches. 0: off.",
        "s",
        0,
        3_600,
    ),
    Setting(
        "BIGCRAWL_BACKOFF",
        10.0,
        float,
        "Rest of a host after a 429, a 503 or no answer. Each further failure in a row multiplies it by four. Up "
        "to half is added at random.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_BACKOFF_MAX",
        43_200.0,
        float,
        "Upper bound of that rest.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_RETRY_AFTER_MAX",
        3_600.0,
        float,
        "Cap on the Retry-After of a 429 or 503. 0: Retry-After is ignored.",
        "s",
        0,
        864_000,
    ),
    Setting(
        "BIGCRAWL_HOST_FAILURES_MAX",
        8,
        int,
        "Failures in a row after which a host is retired, most of a day with the defaults. Its URLs are kept, and "
        "the crawl does not wait for them. 0: never.",
        "failures",
        0,
        1_000_000,
    ),
    Setting(
        "BIGCRAWL_LAST_FAILURES_MAX",
        4,
        int,
        "The same while only failing hosts are left, so that a crawl ends minutes after its last page, not a day. "
        "0: no difference.",
        "failures",
        0,
        1_000_000,
    ),
    Setting(
        "BIGCRAWL_BLACKLIST",
        None,
        list,
        "Hosts, pay-level domains, URL patterns and address ranges that are not fetched: a list, or a file.",
        has_file=True,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_SPEED",
        "",
        str,
        "Limits on pages and bytes per second of the whole crawl, by time of day and weekday. Empty: no limit.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_TIME_ZONE",
        "UTC",
        str,
        "Time zone of the times in BIGCRAWL_SPEED, a name such as Europe/Berlin.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_ROBOTS",
        "obey",
        str,
        "robots.txt is obeyed unless this is the whole phrase ignore-i-own-these-hosts.",
        choices=("obey", "ignore-i-own-these-hosts"),
        alike=True,
    ),
    Setting(
        "BIGCRAWL_CONNECTION_KEYS",
        [
            "proxy",
            "bindaddress",
            "impersonate",
            "impersonate_args",
            "impersonate_curl_options",
            "curl_cffi_options",
        ],
        list,
        "Keys of meta that decide how a request connects. robots.txt is fetched with those of the request for which it "
        "is fetched, and with its name and password for the proxy.",
    ),
    Setting(
        "BIGCRAWL_ROBOTS_KEPT_MIN",
        3_600.0,
        float,
        "Shortest time a robots.txt is cached, whatever its Cache-Control. Without Cache-Control it is cached for "
        "a day.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_NOFOLLOW",
        "obey",
        str,
        "Whether links marked nofollow (by rel, robots meta element or X-Robots-Tag) are dropped or followed.",
        choices=("obey", "follow"),
        alike=True,
    ),
    Setting(
        "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES",
        False,
        bool,
        "Fetch from loopback, private, link-local and cloud metadata addresses. For tests and intranets.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_ALLOW_ADDRESSES",
        [],
        list,
        "Addresses and networks to fetch from although they are not public, such as 10.1.0.0/16.",
        alike=True,
    ),
    "DNS",
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
        "Addresses of the name servers to ask, with the port if it is not 53. Empty: those of /etc/resolv.conf.",
    ),
    Setting(
        "BIGCRAWL_DNS_FAMILIES",
        "ipv4-first",
        str,
        "Which addresses of a host to use. With -first, the other family is asked for only if the first has no "
        "address.",
        choices=("ipv4-first", "ipv6-first", "ipv4", "ipv6"),
    ),
    Setting("BIGCRAWL_DNS_TIMEOUT", 10.0, float, "Time limit of a look-up, all tries together.", "s", 0.1, 120),
    Setting("BIGCRAWL_DNS_TRIES", 4, int, "How often a look-up asks each name server.", "tries", 1, 10),
    Setting(
        "BIGCRAWL_DNS_TTL_MIN",
        60.0,
        float,
        "Shortest time an answer is cached, whatever its TTL.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_DNS_TTL_MAX",
        86_400.0,
        float,
        "Longest time an answer is cached, whatever its TTL.",
        "s",
        1,
        604_800,
    ),
    Setting(
        "BIGCRAWL_DNS_NEGATIVE_TTL",
        300.0,
        float,
        "How long a name without an address, or that does not exist, is cached as such.",
        "s",
        1,
        86_400,
    ),
    Setting(
        "BIGCRAWL_DNS_SHARED",
        50_000,
        int,
        "DNS answers that nodes share in Redis, some 170 bytes each. 0: no sharing.",
        "answers",
        0,
        10_000_000,
    ),
    Setting(
        "BIGCRAWL_DNS_PLD_NAMES",
        300,
        int,
        "New names of one pay-level domain looked up per minute, scaled by its budget over BIGCRAWL_BUDGET. Others "
        "wait. 0: no limit.",
        "names",
        0,
        1_000_000,
    ),
    "Identity",
    Setting(
        "BIGCRAWL_CONTACT",
        None,
        str,
        "A web page or mail address where site owners can reach you. Unset: the one in USER_AGENT. Without either, "
        "nothing is fetched from public addresses.",
    ),
    "Fetching",
    Setting(
        "BIGCRAWL_FETCHES_MIN",
        4,
        int,
        "Lower bound of a node's concurrent fetches when a congested link or CPU slows all answers. Otherwise it "
        "runs CONCURRENT_REQUESTS. 0: never fewer than that.",
        "fetches",
        0,
        100_000,
    ),
    Setting(
        "BIGCRAWL_IN_PROCESS_MAX",
        0,
        int,
        "URLs a node may hold that are taken and not acknowledged. This many may be fetched again after a kill. 0: "
        "three times CONCURRENT_REQUESTS.",
        "URLs",
        0,
        100_000,
    ),
    Setting(
        "BIGCRAWL_FETCH_DEADLINE",
        300.0,
        float,
        "Hard time limit of a fetch. A host rests this long if its node, on the same machine, hangs or is stopped.",
        "s",
        1,
        86_400,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_STOP_GRACE",
        4.0,
        float,
        "Time that running fetches get to end after a stop signal. The rest are aborted and requeued.",
        "s",
        0,
        3_600,
    ),
    "Limits of an answer",  # besides Scrapy's DOWNLOAD_MAXSIZE and DOWNLOAD_TIMEOUT
    Setting(
        "BIGCRAWL_TRUNCATE",
        True,
        bool,
        "Keep what has arrived of an answer that exceeds DOWNLOAD_MAXSIZE or DOWNLOAD_TIMEOUT, marked as truncated "
        "in its flags and WARC record. False: the fetch fails.",
    ),
    Setting(
        "BIGCRAWL_HEADER_BYTES_MAX",
        65_536,
        int,
        "Bytes of an answer's headers, including interim answers and trailers. Beyond that the fetch fails.",
        "bytes",
        1_024,
        300_000,
    ),
    Setting(
        "BIGCRAWL_HEADERS_MAX",
        500,
        int,
        "Header lines of an answer. Beyond that the fetch fails.",
        "lines",
        8,
        5_000,
    ),
    Setting(
        "BIGCRAWL_DECOMPRESSION_RATIO_MAX",
        250,
        int,
        "How many times a body may grow when decompressed, above 1 MiB. A larger one is treated as a decompression "
        "bomb and not passed to the spider.",
        "times",
        2,
        1_000_000,
    ),
    Setting(
        "BIGCRAWL_ENCODINGS_MAX",
        2,
        int,
        "Nested content encodings of a body that are decoded. A body with more is refused.",
        "encodings",
        1,
        10,
    ),
    Setting(
        "BIGCRAWL_PAGE_BYTES_MAX",
        4 << 20,
        int,
        "Bytes of a decompressed page that are scanned for links. The page itself is kept whole.",
        "bytes",
        65_536,
        64 << 20,
    ),
    Setting(
        "BIGCRAWL_PAGE_LINKS_MAX",
        20_000,
        int,
        "Links extracted from a page, duplicates included. Later ones are dropped.",
        "links",
        100,
        1_000_000,
    ),
    Setting(
        "BIGCRAWL_PAGE_LINK_BYTES_MAX",
        2 << 20,
        int,
        "Bytes of all absolute URLs extracted from a page, duplicates included. Later ones are dropped.",
        "bytes",
        65_536,
        64 << 20,
    ),
    Setting(
        "BIGCRAWL_CONNECTION_REQUESTS_MAX",
        1_000,
        int,
        "Requests sent over one connection before it is closed.",
        "requests",
        1,
        1_000_000,
    ),
    Setting(
        "BIGCRAWL_CONNECTION_AGE_MAX",
        600.0,
        float,
        "Age at which a connection is used for no more requests.",
        "s",
        1,
        86_400,
    ),
    "Nodes",
    Setting(
        "BIGCRAWL_LEASE_SECONDS",
        30.0,
        float,
        "How long a node owns its partitions after its last sign of life. Raise it if short pauses of a machine "
        "cost it its partitions. Lower it if takeover after a node's death is too slow.",
        "s",
        2,
        3_600,
        alike=True,
    ),
    Setting(
        "BIGCRAWL_START_WAIT",
        60.0,
        float,
        "How long a starting node waits for Redis or for disk space before it gives up with exit status 1. 0: not "
        "at all.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_DEATHS_MAX",
        3,
        int,
        "Node deaths after which a URL becomes a dead letter and ends unfetched, if it was in process at each, had "
        "its page, and was alone at the last. Twice as many if its page had not arrived.",
        "deaths",
        2,
        1_000,
    ),
    Setting(
        "BIGCRAWL_CALLBACKS",
        None,
        list,
        "For stored requests whose callback or errback was renamed or removed: a list of old=new gives them to another "
        "method of the spider, old= drops them, and ?= drops those that cannot be decoded. All others wait.",
    ),
    Setting(
        "BIGCRAWL_STORED_PACKAGES",
        None,
        list,
        "Packages and modules whose classes and functions stored requests may name, also as the classes of their items "
        "and of the requests themselves. Unset: the packages of the spider and of SPIDER_MODULES.",
    ),
    Setting(
        "BIGCRAWL_STORED_TYPES",
        None,
        list,
        "Further types that requests may hold: a list of class=pair, two import paths. The pair is a tuple of two "
        "functions, object -> storable values and back.",
    ),
    Setting(
        "BIGCRAWL_NOT_STORABLE",
        "refuse",
        str,
        "What becomes of a request with a value that cannot be stored: refuse, with an error for its errback; or "
        "memory, where the value waits in this process and is lost with it.",
        choices=("refuse", "memory"),
    ),
    Setting(
        "BIGCRAWL_HANDLED_SCHEMES",
        None,
        list,
        "Schemes beyond http, https and data of which also requests that are no start requests go to the project's "
        "download handlers, such as s3.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_FINGERPRINTS",
        False,
        bool,
        "Whether requests to one URL are different ones if REQUEST_FINGERPRINTER_CLASS tells them apart, by "
        "their meta or headers.",
        alike=True,
    ),
    Setting(
        "BIGCRAWL_STANDSTILL_SECONDS",
        20.0,
        float,
        "How long the event loop may be blocked, for instance by an endless callback, before the watchdog logs the "
        "stack and ends the process. 0: no limit.",
        "s",
        0,
        86_400,
    ),
    Setting(
        "BIGCRAWL_PROGRESS_SECONDS",
        60.0,
        float,
        "Time between two progress lines in the log. 0: none.",
        "s",
        0,
        3_600,
    ),
    Setting(
        "BIGCRAWL_REPORT_DIR",
        None,
        str,
        "Directory for the report of the crawl, report.html and report.json, which the last node writes when it ends. "
        "Unset: none is written; `scrapy frontier report` writes one at any time.",
    ),
    Setting(
        "BIGCRAWL_METRICS",
        False,
        bool,
        "Whether this node serves its metrics for Prometheus, at /metrics. Needs the extra `metrics`.",
    ),
    Setting(
        "BIGCRAWL_METRICS_ADDRESS",
        "127.0.0.1",
        str,
        "IP address at which metrics are served. Whoever reaches it can read them: there is no password.",
    ),
    Setting(
        "BIGCRAWL_METRICS_PORT",
        "9410-9429",
        str,
        "Port at which metrics are served, or a range such as 9410-9429, of which the first free one is used. 0: any "
        "free port. The log says which it is.",
    ),
    Setting(
        "BIGCRAWL_DASHBOARD",
        False,
        bool,
        "Whether this node serves the dashboard. `scrapy frontier dashboard` serves it without a node.",
    ),
    Setting(
        "BIGCRAWL_DASHBOARD_ADDRESS",
        "127.0.0.1",
        str,
        "IP address at which the dashboard is served. One that other machines reach needs a token.",
    ),
    Setting(
        "BIGCRAWL_DASHBOARD_PORT",
        "9430-9449",
        str,
        "Port at which the dashboard is served, or a range such as 9430-9449, of which the first free one is used. 0: "
        "any free port. The log says which it is.",
    ),
    Setting(
        "BIGCRAWL_DASHBOARD_TOKEN",
        None,
        str,
        "Secret that changes by the dashboard need, at least 16 characters, for instance of `openssl rand -hex 16`. "
        "Unset: nothing can be changed there.",
    ),
    Setting(
        "BIGCRAWL_DASHBOARD_TOKEN_FILE",
        None,
        str,
        "File that holds the token, and nothing else, instead of BIGCRAWL_DASHBOARD_TOKEN: command lines can be "
        "read by other users of the machine.",
    ),
    Setting(
        "BIGCRAWL_DASHBOARD_ORIGIN",
        None,
        str,
        "Scheme, name and port under which a reverse proxy shows the dashboard, such as https://crawl.example.org. "
        "Looking needs the token then too.",
    ),
)

SETTINGS: tuple[Setting, ...] = tuple(row for row in TABLE if isinstance(row, Setting))
BY_NAME: dict[str, Setting] = {setting.name: setting for setting in SETTINGS}

# The ten that most crawls touch: who crawls, where things are, how far and how fast. They open the page.
MATTER_MOST = (
    "BIGCRAWL_CONTACT",
    "BIGCRAWL_CRAWL",
    "BIGCRAWL_STATE_DIR",
    "BIGCRAWL_WARC_DIR",
    "BIGCRAWL_REDIS_URL",
    "BIGCRAWL_MAX_PAGES",
    "BIGCRAWL_HOST_DELAY",
    "BIGCRAWL_SPEED",
    "BIGCRAWL_BLACKLIST",
    "BIGCRAWL_BUDGET_POLICY",
)
