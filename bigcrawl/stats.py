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

from bigcrawl.feature_list import modules_of
from bigcrawl.table_rows import Stat

SCRAPY_STATS: tuple[Stat, ...] = (
    # --- discovered
    Stat(
        "bigcrawl/requests/bytes",
        "counter",
        "bytes",
        "Bytes of requests as sent, before encryption, of those that libcurl sends.",
        "downloads/http.py",
    ),
    Stat("bigcrawl/links/found", "counter", "URLs", "URLs received in `Links` batches.", "middlewares/links.py"),
    Stat(
        "bigcrawl/links/origin_bytes",
        "counter",
        "bytes",
        "Bytes that BIGCRAWL_LINK_ORIGIN has added to URLs of `Links` batches, before compression.",
        "scheduler/adapter/drops.py",
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
            ("url-credentials", "a request or link that a spider gives with a user or password in its URL"),
            ("not-storable", "a request with a value that cannot be stored; the log names each such key and type once"),
            ("error", "a request on which bigcrawl raised an error; the log has the traceback"),
        ),
    ),
    Stat(
        "bigcrawl/handler_errors",
        "counter",
        "downloads",
        "Downloads, of robots.txt too, that failed by an error of their handler, without evidence about the host.",
        "downloads/own_errors.py",
    ),
    Stat(
        "bigcrawl/memory/{what}",
        "counter",
        "requests",
        "Requests with values that cannot be stored, which this process keeps in memory.",
        "scheduler/adapter/live_requests.py",
        (
            ("kept", "with BIGCRAWL_NOT_STORABLE = memory, or tried again with additions of a middleware or handler"),
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
    # --- fetched
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
            ("charset", "not in one of the charsets that BIGCRAWL_PAGE_RULES has for its site"),
        ),
    ),
    Stat(
        "bigcrawl/fetches/limit",
        "gauge",
        "fetches",
        "Limit on this node's concurrent fetches, hanging ones not counted. It falls when the link is congested.",
        "scheduler/adapter/scrapy_engine.py",
    ),
    Stat(
        "bigcrawl/limits/{reason}",
        "counter",
        "answers",
        "Answers that met a limit and are not read, or only in part, and connections closed at one. The log has the "
        "first page of each reason, and `scrapy frontier explain` the reason of each page.",
        "downloads/response_builder.py, downloads/connections.py, downloads/downloader.py, downloads/http.py, "
        "middlewares/compression.py, middlewares/links.py",
        (
            ("size", "larger than DOWNLOAD_MAXSIZE as transferred: truncated, or failed without BIGCRAWL_TRUNCATE"),
            ("pieces", "a body in more than 65,536 small pieces: truncated, or failed without BIGCRAWL_TRUNCATE"),
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
            (
                "packing",
                "not encoded by its Content-Encoding, nor text: not seen by the spider; or cut: read as far as it goes",
            ),
            ("dataloss", "an answer that broke off, with DOWNLOAD_FAIL_ON_DATALOSS = False: read as far as it came"),
            ("listing-packing", "a sitemap that cannot be unpacked, or not to its end: read as far as it goes"),
            ("listing-growth", "a sitemap that grows too much when unpacked, or has too many members: not read"),
            ("listing-bytes", "a feed of more than 4 MB: the rest is not read"),
            ("listing-tags", "a sitemap or feed with too many tags: the rest is not read"),
            ("listing-references", "a sitemap or feed with too many references: the rest is not read"),
            (
                "listing-entries",
                "a sitemap of more than 50,000 entries, or a feed of more than 1,000: the rest is not read",
            ),
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
            ("skipped", "an answer to a URL that cannot be crawled, or whose index has no valid offset"),
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
        "bigcrawl/alone/forbidden", "counter", "requests", "Requests that robots.txt forbids.", "middlewares/robots.py"
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
    *(row for module in modules_of("stats") for row in getattr(module, "STATS", ())),
)


def _of_step(key: str, kind: str, unit: str, meaning: str) -> Stat:
    return Stat(key, kind, unit, meaning, "trim_partition.lua")


CRAWL_COUNTERS: tuple[Stat, ...] = (
    # --- sent and merged
    Stat(
        "appended_urls",
        "counter",
        "URLs",
        "URLs appended to inboxes, in batches.",
        "append_batch.lua, park_urls.lua, set_aside_urls.lua",
    ),
    _of_step("folded", "mark", "stream id", "The last inbox entry that a committed step has merged."),
    _of_step(
        "trimmed",
        "mark",
        "stream id, batch",
        "The last inbox entry and admit batch that Redis may have dropped; files without them are an older copy.",
    ),
    _of_step("folded_urls", "counter", "URLs", "URLs read from the inbox by committed steps."),
    _of_step("seen", "gauge", "URLs", "Keys in URLSeen: distinct URLs of the crawl."),
    _of_step("seen_bytes", "gauge", "bytes", "Files of URLSeen, as the last step committed them."),
    _of_step("table_bytes", "gauge", "bytes", "Files of all other tables."),
    _of_step("queue_bytes", "gauge", "bytes", "Files of turns, over-budget and parked queues."),
    _of_step("duplicates", "counter", "URLs", "URLs dropped because they had been seen before."),
    _of_step(
        "repeats",
        "counter",
        "URLs",
        "URLs queued beyond those in URLSeen: visited again, fetched each time they are found, moved back from Redis, "
        "forgotten.",
    ),
    _of_step(
        "imported", "counter", "URLs", "Keys of another crawl that an import added to URLSeen. They are not queued."
    ),
    _of_step(
        "chosen_urls",
        "counter",
        "URLs",
        "URLs that steps have chosen for Redis. Those beyond `admitted_urls` are on their way.",
    ),
    _of_step(
        "rejected", "gauge", "entries", "Inbox entries that could not be read and lie in the partition's `rejected/`."
    ),
    _of_step(
        "untold",
        "gauge",
        "rows",
        "Near copies that a step has found, and that were not sent yet to the partitions of their contents.",
    ),
    _of_step("manifest", "counter", "manifests", "Number of the last committed manifest."),
    _of_step("chosen", "counter", "batches", "Number of the last admit batch of a committed step."),
    # --- queued
    Stat(
        "waiting",
        "gauge",
        "URLs",
        "URLs on disk: in turns, over budget, parked, and until their next visit.",
        "trim_partition.lua, awaken_host.lua",
    ),
    _of_step("revisits", "gauge", "URLs", "Those of them that wait for the time of their next visit."),
    _of_step("overdue", "gauge", "URLs", "Those of them whose next visit is due."),
    _of_step("next_visit_s", "gauge", "s", "When the first of them is due, in seconds since 1970; 0 without any."),
    Stat(
        "withheld",
        "gauge",
        "URLs",
        "Further URLs on disk, which the crawl does not wait for: their budget is 0, the blacklist covers them, they "
        "are seeds at a closed address, or their host is retired.",
        "trim_partition.lua, awaken_host.lua",
    ),
    _of_step(
        "unrunnable",
        "gauge",
        "URLs",
        "Further URLs on disk, which no spider could run: it lacks their callback or errback, or cannot decode their "
        "request. The crawl is not finished while there are any; see `BIGCRAWL_CALLBACKS`.",
    ),
    _of_step(
        "unrunnable_methods",
        "mark",
        "text",
        "How many of them wait for each method: `parse_item=28 ?=2`, ? for a request that cannot be decoded.",
    ),
    _of_step("damaged", "mark", "0 or 1", "1 while the partition is set apart because one of its files is damaged."),
    _of_step(
        "missing",
        "mark",
        "0 or 1",
        "1 while the partition is set apart because its files are nowhere left; see BIGCRAWL_LOST_PARTITIONS.",
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
        "1 after Redis was restarted while a node fetched: counters might lack forgotten changes.",
        "claim_partition.lua, reconcile_partition.lua",
    ),
    Stat(
        "readmitted",
        "counter",
        "URLs",
        "URLs sent to Redis again when a partition was opened, because Redis had lost or never received them.",
        "record_rewind.lua",
    ),
    Stat(
        "lost",
        "counter",
        "URLs",
        "URLs lost because Redis lost more than BIGCRAWL_REDIS_LOSS_SECONDS. A new link to one queues it again.",
        "record_rewind.lua",
    ),
    _of_step(
        "begun_anew",
        "mark",
        "0 or 1",
        "1 if the partition started again without its lost files; see BIGCRAWL_LOST_PARTITIONS.",
    ),
    _of_step(
        "may_refetch",
        "gauge",
        "URLs",
        "URLs that had ended or were in Redis when the partition started again: the most that might be fetched twice.",
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
        "scheduler/gates/gatekeeper.py, scheduler/node/set_aside.py, scheduler/gates/address_check.py, "
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
            ("lost-from-memory", "it held unstorable values, and the process that kept it has ended or is another"),
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
        "URLs that ended and were acknowledged, with any outcome.",
        "exchange_urls.lua, drop_urls.lua, reconcile_partition.lua, admit_urls.lua",
    ),
    Stat("bytes", "counter", "bytes", "Bytes of bodies as transferred, repeated tries included.", "exchange_urls.lua"),
    *(row for module in modules_of("stats") for row in getattr(module, "COUNTS", ())),
)
