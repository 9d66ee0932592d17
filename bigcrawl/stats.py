"""THE table of what bigcrawl counts. Tests compare the code with it, and `make docs` writes `docs/stats.md` from it.

Counts are held in two places:

    SCRAPY_STATS     keys of Scrapy's stats collector: this process, this run
    CRAWL_COUNTERS   fields of the partitions' `state` in Redis: the whole crawl, all nodes and runs. `scrapy frontier
                     status`, the progress line and the summary show their sums

To add one, put a row here, in the order in which a URL meets the code, with its unit and a meaning that says what is
counted and what is not. Count it, then run `make docs`. A `{placeholder}` in a key stands for the values that the row
lists; if the row lists none, they cannot be enumerated (`{code}`).

Kinds: a `counter` only grows; a `gauge` goes up and down; a `mark` is not a quantity.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stat:
    """One row. `set_by` names the module below `bigcrawl/`, or the Lua script, that counts."""

    key: str
    kind: str
    unit: str
    meaning: str
    set_by: str
    values: tuple[tuple[str, str], ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The key with each listed value in place of the placeholder; the key itself if no values are listed."""
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
        "URLs received in `Links` batches.",
        "middlewares/links.py",
    ),
    Stat(
        "bigcrawl/links/sent",
        "counter",
        "URLs",
        "URLs of `Links` batches sent to the seen check. The others were dropped, or had been sent recently.",
        "middlewares/links.py",
    ),
    Stat(
        "bigcrawl/dropped/{reason}",
        "counter",
        "URLs",
        "URLs dropped before they reached the frontier.",
        "middlewares/links.py, middlewares/link_checks.py, middlewares/redirects.py, scheduler/adapter/drops.py, "
        "scheduler/adapter/spider_intake.py",
        (
            ("depth", "links deeper than Scrapy's DEPTH_LIMIT"),
            ("url", "a link that is not an http or https URL, or cannot be joined with its base"),
            ("url-too-long", "longer than BIGCRAWL_URL_BYTES_MAX"),
            ("offsite", "a link outside the spider's `allowed_domains`"),
            ("scope", "a link or redirect out of BIGCRAWL_SCOPE"),
            ("scheme", "one that is not of BIGCRAWL_FILTER_SCHEMES"),
            ("extension", "one whose path ends as in BIGCRAWL_FILTER_EXTENSIONS"),
            ("path", "one that BIGCRAWL_FILTER_PATHS disallows"),
            ("directory-depth", "one with more directories than BIGCRAWL_FILTER_DIRECTORIES_MAX"),
            ("characters", "one with a character of BIGCRAWL_FILTER_CHARACTERS"),
            ("function", "one that the function of BIGCRAWL_FILTER does not want"),
            (
                "discovery-off",
                "a link found after `scrapy frontier discovery off`, in the spider's output or a robots.txt",
            ),
            ("copy", "a link on a copy of another page of its pay-level domain, see BIGCRAWL_COPY_LINKS"),
            ("nofollow", "a link that its page marks nofollow, by rel, robots meta element or X-Robots-Tag"),
            (
                "redirect",
                "a redirect or meta refresh to something that is not a web address: not followed, the answer is kept",
            ),
            (
                "redirect-to-itself",
                "a redirect or meta refresh of a page to itself that sets no new cookie: not followed",
            ),
            ("url-scheme", "a request with a scheme other than http and https"),
            ("url-syntax", "a request with an unreadable host or port"),
            ("url-empty-host", "a request for a URL without a host"),
            ("not-storable", "a request with a value that cannot be stored; the log names each such key and type once"),
            ("error", "a request on which bigcrawl raised an error; the log has the traceback"),
        ),
    ),
    Stat(
        "bigcrawl/handler_errors",
        "counter",
        "downloads",
        "Downloads, of robots.txt too, that failed by an error of their handler which says nothing of the host.",
        "downloads/own_errors.py",
    ),
    Stat(
        "bigcrawl/memory/{what}",
        "counter",
        "requests",
        "Requests with values that cannot be stored, which this process keeps in memory.",
        "scheduler/adapter/live_requests.py",
        (
            ("kept", "with BIGCRAWL_NOT_STORABLE = memory, or tried again with what a middleware or handler added"),
            ("lost", "taken when their process had ended or was another: not fetched, and their errbacks called"),
        ),
    ),
    Stat(
        "bigcrawl/entries/{what}",
        "counter",
        "entries",
        "Entries of a list in Redis that `RedisSpider` and its like took.",
        "spiders/list_reader.py",
        (
            ("taken", "of which the spider made its requests, if any"),
            ("bad", "too large, no URL and no JSON with one, or the spider raised an error; the log has the first"),
        ),
    ),
    Stat(
        "bigcrawl/traps/{kind}",
        "counter",
        "URLs",
        "Trap-shaped URLs sent to the seen check; each counts under all its kinds.",
        "scheduler/adapter/spider_intake.py",
        (
            ("long", "longer than BIGCRAWL_TRAP_URL_BYTES"),
            ("repeats", "a path segment that occurs at least BIGCRAWL_TRAP_REPEATS times"),
            ("deep", "more segments than BIGCRAWL_TRAP_SEGMENTS, or more hops than BIGCRAWL_TRAP_HOPS"),
            ("session", "a session id"),
            ("calendar", "a calendar page"),
            ("parameters", "at least BIGCRAWL_TRAP_PARAMETERS query parameters"),
        ),
    ),
    # --- fetched
    Stat(
        "bigcrawl/visits/{change}",
        "counter",
        "pages",
        "Visits by what they found of a page, if pages are visited again. Visits that brought no answer do not count.",
        "middlewares/revisits.py",
        (
            ("added", "a page that was not known"),
            ("changed", "another content, or a page that was gone is there again"),
            ("gone", "404, 410 or a redirect for good in place of a page"),
            ("unchanged", "the same content: 304, or a body with the same digest"),
        ),
    ),
    Stat(
        "bigcrawl/filtered/{rule}",
        "counter",
        "pages",
        "Pages that a filter kept from the spider.",
        "middlewares/page_filter.py",
        (
            ("media-type", "not of BIGCRAWL_FILTER_MEDIA_TYPES: its body was not received"),
            ("string", "it contains a text of BIGCRAWL_FILTER_STRINGS"),
            ("language", "not in one of BIGCRAWL_FILTER_LANGUAGES"),
        ),
    ),
    Stat(
        "bigcrawl/fetches/limit",
        "gauge",
        "fetches",
        "Limit on this node's concurrent fetches, hanging ones not counted. It falls when the link is congested.",
        "scheduler/scheduler.py",
    ),
    Stat(
        "bigcrawl/limits/{reason}",
        "counter",
        "answers",
        "Answers that met a limit (truncated, refused or failed), and connections closed at one.",
        "downloads/response_builder.py, downloads/connection_limits.py, downloads/downloader.py, "
        "middlewares/compression.py, middlewares/links.py",
        (
            ("size", "larger than DOWNLOAD_MAXSIZE as transferred: truncated, or failed without BIGCRAWL_TRUNCATE"),
            ("time", "longer than DOWNLOAD_TIMEOUT: truncated if part of the body had arrived, else failed"),
            ("header-bytes", "more than BIGCRAWL_HEADER_BYTES_MAX: failed"),
            ("headers", "more header lines than BIGCRAWL_HEADERS_MAX: failed"),
            ("redirects", "more redirects than REDIRECT_MAX_TIMES: not followed"),
            ("decompressed-size", "larger than DOWNLOAD_MAXSIZE when decompressed: refused"),
            ("decompression-ratio", "grows by more than BIGCRAWL_DECOMPRESSION_RATIO_MAX when decompressed: refused"),
            ("encodings", "more content encodings than BIGCRAWL_ENCODINGS_MAX: refused"),
            ("page-bytes", "a page larger than BIGCRAWL_PAGE_BYTES_MAX: links beyond that are not read"),
            ("page-links", "a page with more links than BIGCRAWL_PAGE_LINKS_MAX: the rest are dropped"),
            (
                "page-link-bytes",
                "a page with more bytes of URLs than BIGCRAWL_PAGE_LINK_BYTES_MAX: the rest are dropped",
            ),
            ("packing", "not encoded as its Content-Encoding says, nor text: the spider does not see it"),
            ("connection-requests", "a connection closed after BIGCRAWL_CONNECTION_REQUESTS_MAX requests"),
            ("connection-age", "a connection not used again after BIGCRAWL_CONNECTION_AGE_MAX"),
        ),
    ),
    Stat(
        "bigcrawl/sitemaps/found",
        "counter",
        "URLs",
        "Sitemaps named by robots.txt files and passed to the spider's `parse_sitemap_urls`.",
        "middlewares/links.py",
    ),
    # --- stored
    Stat(
        "bigcrawl/source/pages",
        "counter",
        "pages",
        "Stored pages that were given to the spider (BIGCRAWL_SOURCE).",
        "stored/scheduler.py",
    ),
    Stat(
        "bigcrawl/source/{reason}",
        "counter",
        "pages",
        "Links and requests without an answer (BIGCRAWL_SOURCE), by reason.",
        "stored/intake.py, stored/pages.py, stored/scheduler.py",
        (
            ("not-stored", "it is in none of the files, counted for each link"),
            ("damaged", "the record is cut off, cannot be unpacked, or is not a WARC record"),
            ("too-large", "larger than DOWNLOAD_MAXSIZE"),
            ("no-original", "a copy by reference, and the page that it refers to is in none of the files"),
        ),
    ),
    Stat(
        "bigcrawl/warc/records",
        "counter",
        "records",
        "WARC records written: three per exchange, one per file, and one more per page with directives to robots.",
        "pipelines/page_writes.py",
    ),
    Stat(
        "bigcrawl/warc/bytes",
        "counter",
        "bytes",
        "Bytes written to WARC files, compressed.",
        "pipelines/page_writes.py",
    ),
    Stat(
        "bigcrawl/warc/copies",
        "counter",
        "pages",
        "Pages stored by reference to another with the same body, see `BIGCRAWL_WARC_COPIES`.",
        "pipelines/page_writes.py",
    ),
    Stat(
        "bigcrawl/warc/write_errors",
        "counter",
        "errors",
        "Failed writes. Each is retried; on a full disk that is one a second.",
        "pipelines/page_writes.py, pipelines/warc.py",
    ),
    Stat(
        "bigcrawl/warc/recovered_files",
        "counter",
        "files",
        "Files left open by killed processes and closed at the start.",
        "pipelines/warc.py",
    ),
    Stat(
        "bigcrawl/warc/cut_bytes",
        "counter",
        "bytes",
        "Bytes of incomplete records cut off the ends of those files.",
        "pipelines/warc.py",
    ),
    Stat(
        "bigcrawl/warc/indexed_files",
        "counter",
        "files",
        "WARC files whose index was made, those of earlier runs included.",
        "pipelines/warc.py",
    ),
    Stat(
        "bigcrawl/warc/uploaded_files",
        "counter",
        "files",
        "WARC files moved to `BIGCRAWL_WARC_STORE_URL`, those of earlier runs included.",
        "pipelines/page_shipping.py",
    ),
    Stat(
        "bigcrawl/warc/uploaded_bytes",
        "counter",
        "bytes",
        "Bytes of those files and their indexes.",
        "pipelines/page_shipping.py",
    ),
    Stat(
        "bigcrawl/warc/upload_errors",
        "counter",
        "errors",
        "How often the store refused, failed or did not answer. Each time it is asked again, after a rest.",
        "pipelines/page_shipping.py",
    ),
    # --- without the frontier
    Stat(
        "bigcrawl/alone/robots_fetched",
        "counter",
        "fetches",
        "Requests for robots.txt without the frontier, redirects included.",
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
        "Requests that ended because their robots.txt could not be fetched.",
        "middlewares/robots.py",
    ),
    Stat(
        "bigcrawl/alone/put_off",
        "counter",
        "requests",
        "Requests returned to the scheduler until their robots.txt is fetched again.",
        "middlewares/robots.py",
    ),
    Stat(
        "bigcrawl/alone/unreadable",
        "counter",
        "requests",
        "Requests with an unreadable host or port, for which no robots.txt can be fetched.",
        "middlewares/robots.py",
    ),
    Stat(
        "bigcrawl/alone/back_off",
        "counter",
        "failures",
        "Failures that made their host rest longer: 429, 503 and failed connections.",
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
        "appended_urls",
        "counter",
        "URLs",
        "URLs appended to inboxes, in batches.",
        "append_batch.lua, park_urls.lua, set_aside_urls.lua",
    ),
    Stat(
        "folded",
        "mark",
        "stream id",
        "The last inbox entry that a committed step has merged.",
        "trim_partition.lua",
    ),
    Stat(
        "trimmed",
        "mark",
        "stream id, batch",
        "The last inbox entry and admit batch that Redis may have dropped; files without them are an older copy.",
        "trim_partition.lua",
    ),
    Stat("folded_urls", "counter", "URLs", "URLs read from the inbox by committed steps.", "trim_partition.lua"),
    Stat("seen", "gauge", "URLs", "Keys in URLSeen: distinct URLs of the crawl.", "trim_partition.lua"),
    Stat("duplicates", "counter", "URLs", "URLs dropped because they had been seen before.", "trim_partition.lua"),
    Stat(
        "repeats",
        "counter",
        "URLs",
        "URLs queued beyond those in URLSeen: visited again, fetched each time they are found, moved back from Redis, "
        "forgotten.",
        "trim_partition.lua",
    ),
    Stat(
        "imported",
        "counter",
        "URLs",
        "Keys of another crawl that an import added to URLSeen. They are not queued.",
        "trim_partition.lua",
    ),
    Stat(
        "chosen_urls",
        "counter",
        "URLs",
        "URLs that steps have chosen for Redis. Those beyond `admitted_urls` are on their way.",
        "trim_partition.lua",
    ),
    Stat(
        "rejected",
        "gauge",
        "entries",
        "Inbox entries that could not be read and lie in the partition's `rejected/`.",
        "trim_partition.lua",
    ),
    Stat(
        "exact_copies",
        "counter",
        "pages",
        "Pages with the content of another page, on whichever node and in whichever run, see `BIGCRAWL_CONTENT_SEEN`.",
        "trim_partition.lua",
    ),
    Stat(
        "near_copies",
        "counter",
        "pages",
        "Further pages with nearly the text of another page, see `BIGCRAWL_CONTENT_SEEN`.",
        "trim_partition.lua",
    ),
    Stat(
        "mirrors",
        "gauge",
        "PLDs",
        "Pay-level domains whose budget is lowered because their pages are those of others, see "
        "`BIGCRAWL_TRAP_MIRROR_SHARE`.",
        "trim_partition.lua",
    ),
    Stat(
        "untold",
        "gauge",
        "rows",
        "Near copies that a step has found, and that the partitions of their contents were not told of yet.",
        "trim_partition.lua",
    ),
    Stat("manifest", "counter", "manifests", "Number of the last committed manifest.", "trim_partition.lua"),
    Stat("chosen", "counter", "batches", "Number of the last admit batch of a committed step.", "trim_partition.lua"),
    # --- queued
    Stat(
        "waiting",
        "gauge",
        "URLs",
        "URLs on disk: in turns, over budget, parked, and until their next visit.",
        "trim_partition.lua, awaken_host.lua",
    ),
    Stat(
        "revisits", "gauge", "URLs", "Those of them that wait for the time of their next visit.", "trim_partition.lua"
    ),
    Stat("overdue", "gauge", "URLs", "Those of them whose next visit is due.", "trim_partition.lua"),
    Stat(
        "withheld",
        "gauge",
        "URLs",
        "Further URLs on disk, which the crawl does not wait for: their budget is 0, the blacklist covers them, they "
        "are seeds at a closed address, or their host is retired.",
        "trim_partition.lua, awaken_host.lua",
    ),
    Stat(
        "unrunnable",
        "gauge",
        "URLs",
        "Further URLs on disk, which no spider could run: it lacks their callback or errback, or cannot decode their "
        "request. The crawl is not finished while there are any; see `BIGCRAWL_CALLBACKS`.",
        "trim_partition.lua",
    ),
    Stat(
        "unrunnable_methods",
        "mark",
        "text",
        "How many of them wait for each method: `parse_item=28 ?=2`, ? for a request that cannot be decoded.",
        "trim_partition.lua",
    ),
    Stat(
        "damaged",
        "mark",
        "0 or 1",
        "1 while the partition is set apart because one of its files is damaged.",
        "trim_partition.lua",
    ),
    Stat(
        "missing",
        "mark",
        "0 or 1",
        "1 while the partition is set apart because its files are nowhere left; see BIGCRAWL_LOST_PARTITIONS.",
        "trim_partition.lua",
    ),
    Stat("admitted", "counter", "batches", "Number of the last admit batch stored in Redis.", "admit_urls.lua"),
    Stat("admitted_urls", "counter", "URLs", "URLs of all batches up to this one.", "admit_urls.lua"),
    Stat(
        "moved",
        "counter",
        "URLs",
        "Times a URL went from Redis back to disk, unfetched: its host is away, or the blacklist covers it.",
        "park_urls.lua, set_aside_urls.lua",
    ),
    Stat(
        "forgot",
        "mark",
        "0 or 1",
        "1 after Redis was restarted while a node fetched: counters may lack what it forgot.",
        "claim_partition.lua, reconcile_partition.lua",
    ),
    Stat(
        "readmitted",
        "counter",
        "URLs",
        "URLs sent to Redis again when a partition was opened, because Redis had lost or never received them.",
        "note_rewind.lua",
    ),
    Stat(
        "lost",
        "counter",
        "URLs",
        "URLs lost because Redis lost more than BIGCRAWL_REDIS_LOSS_SECONDS. A new link to one queues it again.",
        "note_rewind.lua",
    ),
    Stat(
        "begun_anew",
        "mark",
        "0 or 1",
        "1 if the partition's files were lost and it began anew; see BIGCRAWL_LOST_PARTITIONS.",
        "trim_partition.lua",
    ),
    Stat(
        "may_refetch",
        "gauge",
        "URLs",
        "URLs that had ended or were in Redis when the partition began anew: at most so many are fetched twice for it.",
        "trim_partition.lua",
    ),
    Stat("committed", "mark", "0 or 1", "1 once the partition has admitted any URL.", "admit_urls.lua"),
    Stat(
        "hot",
        "gauge",
        "URLs",
        "URLs in back queues, not counting taken ones.",
        "admit_urls.lua, exchange_urls.lua, drop_urls.lua, claim_partition.lua, reconcile_partition.lua, park_urls.lua",
    ),
    Stat(
        "snoozes",
        "mark",
        "changes",
        "Version of the set of snoozed and retired hosts. The owner watches it.",
        "exchange_urls.lua, retire_hosts.lua, awaken_host.lua",
    ),
    # --- fetched and ended
    Stat(
        "robots",
        "counter",
        "fetches",
        "Requests for robots.txt, not counting redirects.",
        "scheduler/gates/gatekeeper.py",
    ),
    Stat(
        "heads",
        "counter",
        "fetches",
        "Requests by HEAD after which the URL was requeued; see BIGCRAWL_HEAD_FIRST.",
        "scheduler/gates/gatekeeper.py",
    ),
    Stat(
        "put_off",
        "counter",
        "URLs",
        "Times a URL that had failed, or of a failing host, was requeued untried because the node was behind.",
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
            ("dns", "the name did not resolve when the connection was made"),
            ("timeout", "exceeded DOWNLOAD_TIMEOUT or BIGCRAWL_FETCH_DEADLINE"),
            ("refused", "the server refused the connection"),
            ("dataloss", "the body was incomplete"),
            ("too-large", "over DOWNLOAD_MAXSIZE, or stopped by a component"),
            ("connection", "connection lost or reset, TLS, or another download failure"),
            ("other", "another exception"),
        ),
    ),
    Stat(
        "dropped:{reason}",
        "counter",
        "URLs",
        "URLs that ended without being fetched.",
        "scheduler/gates/gatekeeper.py, scheduler/node/forbidden_sweep.py, scheduler/gates/address_check.py, "
        "scheduler/handout/handout.py, scheduler/adapter/fetch_errors.py, scheduler/scheduler.py",
        (
            ("forbidden", "robots.txt forbids it"),
            (
                "unreachable",
                "robots.txt could not be fetched repeatedly, while its host answered on another scheme or port",
            ),
            ("unresolved", "the host does not exist in DNS"),
            ("refused-address", "its address is closed; see BIGCRAWL_ALLOW_PRIVATE_ADDRESSES"),
            ("undecodable", "the spider cannot run its request, and BIGCRAWL_CALLBACKS drops it"),
            ("scheme", "no download handler for it"),
            ("ignored", "a downloader middleware refused it"),
            ("elsewhere", "met by the crawler from which the crawl was imported"),
            ("media-type", "by the answer to its HEAD, BIGCRAWL_FILTER_MEDIA_TYPES does not take it"),
            ("size", "by the answer to its HEAD, it is larger than DOWNLOAD_MAXSIZE"),
            (
                "lost-from-memory",
                "it held what cannot be stored, and the process that kept it has ended or is another",
            ),
            ("poison", "it was in process at too many node deaths: a dead letter"),
        ),
    ),
    Stat(
        "retried:{outcome}",
        "counter",
        "tries",
        "Tries that were repeated, by outcome: `retried:status:503`, `retried:error:timeout`.",
        "scheduler/handout/handout.py",
    ),
    Stat(
        "set_aside",
        "counter",
        "URLs",
        "Times a URL about to be fetched went back to disk because the blacklist covers it, or no spider can run it.",
        "set_aside_urls.lua",
    ),
    Stat(
        "dead",
        "gauge",
        "URLs",
        "Dead letters: URLs that kill or hang their node and were neither requeued nor dropped by hand.",
        "bury_url.lua, unbury_urls.lua",
    ),
    Stat(
        "ended",
        "counter",
        "URLs",
        "URLs that ended and were acknowledged, whatever their outcome.",
        "exchange_urls.lua, drop_urls.lua, reconcile_partition.lua, admit_urls.lua",
    ),
    Stat(
        "bytes",
        "counter",
        "bytes",
        "Bytes of bodies as transferred, repeated tries included.",
        "exchange_urls.lua",
    ),
)
