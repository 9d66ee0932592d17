"""THE table of what bigcrawl counts; the code is checked against it, and `make docs` writes `docs/stats.md` from it.

Two kinds of places hold counts:

    SCRAPY_STATS     keys of Scrapy's stats collector: what this process did in this run
    CRAWL_COUNTERS   fields of the partitions' `state` in Redis, summed up by `scrapy frontier status`, the
                     progress line and the summary: what the whole crawl has done, over all nodes and resumes

To add one: put a row here, in the order in which a URL meets the code, with its unit and a meaning that names
what is counted and what is not; then count; then run `make docs`. A `{placeholder}` in a key
stands for the values that the row lists; an empty list means that they cannot be listed (`{code}`).

Kinds: `counter` only grows; `gauge` is a state that comes and goes; `mark` is no quantity at all.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stat:
    """One row; `set_by` is the module below `bigcrawl/`, or the script, that counts."""

    key: str
    kind: str
    unit: str
    meaning: str
    set_by: str
    values: tuple[tuple[str, str], ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The key once for each value of its placeholder; the key itself when there are none to list."""
        if not self.values:
            return (self.key,)
        start, end = self.key.index("{"), self.key.index("}") + 1
        return tuple(self.key[:start] + value + self.key[end:] for value, _ in self.values)


SCRAPY_STATS: tuple[Stat, ...] = (
    # --- discovered
    Stat(
        "bigcrawl/links/found",
        "counter",
        "URLs",
        "URLs that came in `Links` batches.",
        "middlewares/links.py",
    ),
    Stat(
        "bigcrawl/links/sent",
        "counter",
        "URLs",
        "Those of them that were sent on to the seen check; the others were dropped, or sent lately already.",
        "middlewares/links.py",
    ),
    Stat(
        "bigcrawl/dropped/{reason}",
        "counter",
        "URLs",
        "URLs that never reached the frontier.",
        "middlewares/links.py, middlewares/redirects.py, scheduler/adapter/spider_intake.py, scheduler/scheduler.py",
        (
            ("depth", "a batch of links deeper than Scrapy's DEPTH_LIMIT"),
            ("url", "a link that is no http or https URL, or cannot be joined with its base"),
            ("url-too-long", "longer than BIGCRAWL_URL_BYTES_MAX"),
            ("offsite", "a link outside the spider's `allowed_domains`"),
            ("nofollow", "a link that its page asks not to follow, by rel, a robots meta element or X-Robots-Tag"),
            ("redirect", "a redirect, or a page's refresh, to what is no web address: not followed, the answer stays"),
            ("url-scheme", "a request for another scheme than http and https"),
            ("url-syntax", "a request whose host or port cannot be read"),
            ("url-empty-host", "a request for a URL without a host"),
            ("not-storable", "a request that holds what cannot be stored; the log names the key, once each"),
            ("error", "a request on which bigcrawl itself failed; the log has the traceback"),
        ),
    ),
    Stat(
        "bigcrawl/traps/{kind}",
        "counter",
        "URLs",
        "URLs sent to the seen check that have the shape of a trap's; each under all kinds it is of.",
        "scheduler/adapter/spider_intake.py",
        (
            ("long", "longer than BIGCRAWL_TRAP_URL_BYTES"),
            ("repeats", "a segment of the path BIGCRAWL_TRAP_REPEATS times"),
            ("deep", "more segments than BIGCRAWL_TRAP_SEGMENTS, or more hops than BIGCRAWL_TRAP_HOPS"),
            ("session", "the id of a session"),
            ("calendar", "a page of a calendar"),
            ("parameters", "BIGCRAWL_TRAP_PARAMETERS parameters, or more"),
        ),
    ),
    # --- fetched
    Stat(
        "bigcrawl/fetches/limit",
        "gauge",
        "fetches",
        "Pages that this node fetches at a time at most, those that hang not counted; it falls in a crowd.",
        "scheduler/scheduler.py",
    ),
    Stat(
        "bigcrawl/limits/{reason}",
        "counter",
        "answers",
        "Answers that met a limit: cut, refused or failed; and connections that were closed for one.",
        "downloads/reception.py, downloads/reuse.py, downloads/downloader.py, middlewares/compression.py, "
        "middlewares/links.py",
        (
            ("size", "larger than DOWNLOAD_MAXSIZE as it comes off the wire: cut, or failed without BIGCRAWL_TRUNCATE"),
            ("time", "longer than DOWNLOAD_TIMEOUT: cut where a part of the body had come, else failed"),
            ("header-bytes", "more than BIGCRAWL_HEADER_BYTES_MAX: failed"),
            ("headers", "more lines than BIGCRAWL_HEADERS_MAX: failed"),
            ("redirects", "one redirect more than REDIRECT_MAX_TIMES: not followed"),
            ("decompressed-size", "larger than DOWNLOAD_MAXSIZE when it is unpacked: refused"),
            ("decompression-ratio", "grows more than BIGCRAWL_DECOMPRESSION_RATIO_MAX times: refused"),
            ("encodings", "packed more often than BIGCRAWL_ENCODINGS_MAX: refused"),
            ("page-bytes", "a page larger than BIGCRAWL_PAGE_BYTES_MAX: no links are read behind that"),
            ("page-links", "a page with more than BIGCRAWL_PAGE_LINKS_MAX links: the others are left out"),
            ("page-link-bytes", "a page with more than BIGCRAWL_PAGE_LINK_BYTES_MAX of URLs: the others are left out"),
            ("packing", "not packed as its Content-Encoding says: no spider sees it"),
            ("connection-requests", "a connection closed after BIGCRAWL_CONNECTION_REQUESTS_MAX requests"),
            ("connection-age", "a connection not used again after BIGCRAWL_CONNECTION_AGE_MAX"),
        ),
    ),
    Stat(
        "bigcrawl/sitemaps/found",
        "counter",
        "URLs",
        "Sitemaps that robots.txt files named, told to a spider that has `parse_sitemap_urls`.",
        "middlewares/links.py",
    ),
    # --- stored
    Stat(
        "bigcrawl/warc/records",
        "counter",
        "records",
        "WARC records written: two an exchange, one a file, one a page with something to note.",
        "pipelines/warc.py",
    ),
    Stat(
        "bigcrawl/warc/bytes",
        "counter",
        "bytes",
        "Bytes written to WARC files, compressed.",
        "pipelines/warc.py",
    ),
    Stat(
        "bigcrawl/warc/write_errors",
        "counter",
        "errors",
        "Writes that failed; while the disk is full one a second, each tried again.",
        "pipelines/warc.py",
    ),
    Stat(
        "bigcrawl/warc/recovered_files",
        "counter",
        "files",
        "Files of killed writers that were closed at the start.",
        "pipelines/warc.py",
    ),
    Stat(
        "bigcrawl/warc/cut_bytes",
        "counter",
        "bytes",
        "What was cut off their ends: torn records.",
        "pipelines/warc.py",
    ),
    # --- without the frontier
    Stat(
        "bigcrawl/alone/robots_fetched",
        "counter",
        "fetches",
        "robots.txt files asked for without the frontier, redirects counted too.",
        "middlewares/robots.py",
    ),
    Stat(
        "bigcrawl/alone/forbidden",
        "counter",
        "requests",
        "Requests that robots.txt forbids.",
        "middlewares/robots.py",
    ),
    Stat(
        "bigcrawl/alone/unreachable",
        "counter",
        "requests",
        "Requests that ended because their robots.txt was out of reach.",
        "middlewares/robots.py",
    ),
    Stat(
        "bigcrawl/alone/put_off",
        "counter",
        "requests",
        "Requests that went back to the scheduler until their robots.txt is asked for again.",
        "middlewares/robots.py",
    ),
    Stat(
        "bigcrawl/alone/unreadable",
        "counter",
        "requests",
        "Requests for a URL whose host or port cannot be read, so that nobody can be asked.",
        "middlewares/robots.py",
    ),
    Stat(
        "bigcrawl/alone/back_off",
        "counter",
        "failures",
        "429, 503 and failed connections, each of which made its host rest longer.",
        "middlewares/throttle.py",
    ),
    Stat(
        "bigcrawl/alone/retired",
        "counter",
        "requests",
        "Requests that ended because their host had failed too often in a row.",
        "middlewares/throttle.py",
    ),
)

CRAWL_COUNTERS: tuple[Stat, ...] = (
    # --- sent and merged
    Stat(
        "appended",
        "counter",
        "batches",
        "Batches that the inbox took.",
        "append_batch.lua, park_urls.lua, set_aside_urls.lua",
    ),
    Stat(
        "appended_urls",
        "counter",
        "URLs",
        "URLs in those batches.",
        "append_batch.lua, park_urls.lua, set_aside_urls.lua",
    ),
    Stat(
        "folded",
        "mark",
        "stream id",
        "The last inbox entry that a committed step has merged.",
        "trim_partition.lua",
    ),
    Stat("folded_urls", "counter", "URLs", "URLs read from the inbox by committed steps.", "trim_partition.lua"),
    Stat("seen", "gauge", "URLs", "Keys in URLSeen: distinct URLs of the crawl.", "trim_partition.lua"),
    Stat("duplicates", "counter", "URLs", "URLs dropped because they had been seen.", "trim_partition.lua"),
    Stat(
        "rejected",
        "gauge",
        "entries",
        "Inbox entries that could not be read and lie in the partition's `rejected/`.",
        "trim_partition.lua",
    ),
    Stat("manifest", "counter", "manifests", "Number of the last committed manifest.", "trim_partition.lua"),
    Stat("chosen", "counter", "batches", "Number of the last admit batch of a committed step.", "trim_partition.lua"),
    # --- queued
    Stat(
        "waiting",
        "gauge",
        "URLs",
        "URLs on disk: in turns, over budget and parked.",
        "trim_partition.lua, awaken_host.lua",
    ),
    Stat(
        "withheld",
        "gauge",
        "URLs",
        "URLs on disk beside those: no budget lets them go, the blacklist covers them, they are seeds at a closed "
        "address, or their host is retired. "
        "Not waited for.",
        "trim_partition.lua, awaken_host.lua",
    ),
    Stat(
        "damaged",
        "mark",
        "0 or 1",
        "1 while the partition is set apart because a file of it is damaged; the sum is how many are.",
        "trim_partition.lua",
    ),
    Stat("admitted", "counter", "batches", "Number of the last admit batch that Redis took.", "admit_urls.lua"),
    Stat(
        "readmitted",
        "counter",
        "URLs",
        "URLs offered to Redis again when a partition was opened: it had forgotten them, or never heard of them.",
        "note_rewind.lua",
    ),
    Stat(
        "lost",
        "counter",
        "URLs",
        "URLs that Redis lost later than BIGCRAWL_REDIS_LOSS_SECONDS provides for; fetched when a page links to them.",
        "note_rewind.lua",
    ),
    Stat("committed", "mark", "0 or 1", "1 once the partition has admitted anything.", "admit_urls.lua"),
    Stat(
        "hot",
        "gauge",
        "URLs",
        "URLs in back queues, taken ones not counted.",
        "admit_urls.lua, exchange_urls.lua, drop_urls.lua, claim_partition.lua, reconcile_partition.lua, park_urls.lua",
    ),
    Stat(
        "snoozes",
        "mark",
        "changes",
        "Counts changes of the hosts that are snoozed for a minute or more, or retired; the owner watches it.",
        "exchange_urls.lua, retire_hosts.lua, awaken_host.lua",
    ),
    # --- fetched and ended
    Stat(
        "robots",
        "counter",
        "fetches",
        "robots.txt files asked for, redirects not counted.",
        "scheduler/gates/gatekeeper.py",
    ),
    Stat(
        "put_off",
        "counter",
        "URLs",
        "Times that a URL of a failing host, or one that failed before, was given back untried, because the node is "
        "behind with others.",
        "scheduler/handout/handout.py",
    ),
    Stat(
        "status:{code}",
        "counter",
        "URLs",
        "URLs that ended with an answer of this status.",
        "scheduler/adapter/started_requests.py",
    ),
    Stat(
        "error:{kind}",
        "counter",
        "URLs",
        "URLs that ended without an answer, after their retries.",
        "scheduler/adapter/fetch_errors.py",
        (
            ("dns", "the name did not resolve any more when the connection was made"),
            ("timeout", "DOWNLOAD_TIMEOUT or BIGCRAWL_FETCH_DEADLINE"),
            ("refused", "the server refused the connection"),
            ("dataloss", "the body broke off"),
            ("too-large", "over DOWNLOAD_MAXSIZE, or stopped by a component"),
            ("connection", "lost, reset, TLS, or any other failure to download"),
            ("other", "an exception that is none of Scrapy's"),
        ),
    ),
    Stat(
        "dropped:{reason}",
        "counter",
        "URLs",
        "URLs that ended without being fetched.",
        "scheduler/gates/gatekeeper.py, scheduler/node/forbidden_sweep.py, scheduler/gates/doors.py, "
        "scheduler/handout/handout.py, scheduler/adapter/fetch_errors.py, scheduler/scheduler.py",
        (
            ("forbidden", "robots.txt forbids it"),
            (
                "unreachable",
                "robots.txt was out of reach time and again while its host answered at another scheme or port",
            ),
            ("unresolved", "DNS says that the host does not exist"),
            ("refused-address", "an address that BIGCRAWL_ALLOW_PRIVATE_ADDRESSES guards"),
            ("undecodable", "the spider has no such callback any more, or the stored request is damaged"),
            ("scheme", "no download handler for it"),
            ("ignored", "a downloader middleware refused it"),
            ("poison", "it was in process at too many deaths of nodes: it is a dead letter"),
        ),
    ),
    Stat(
        "retried:{outcome}",
        "counter",
        "tries",
        "Tries that were repeated, by what they had ended in: `retried:status:503`, `retried:error:timeout`.",
        "scheduler/handout/handout.py",
    ),
    Stat(
        "set_aside",
        "counter",
        "URLs",
        "Times that a URL which was about to be fetched went back to disk, because the blacklist covers it.",
        "set_aside_urls.lua",
    ),
    Stat(
        "dead",
        "gauge",
        "URLs",
        "Dead letters that are kept: URLs that kill or hang their node, neither queued again nor dropped by hand.",
        "bury_url.lua, unbury_urls.lua",
    ),
    Stat(
        "ended",
        "counter",
        "URLs",
        "URLs acknowledged, however they ended.",
        "exchange_urls.lua, drop_urls.lua, reconcile_partition.lua",
    ),
    Stat(
        "bytes",
        "counter",
        "bytes",
        "Bodies of answers as they came off the wire, those of repeated tries too.",
        "exchange_urls.lua",
    ),
)
