"""PolyBot's tables: requests, statuses, errors, robots.txt, sizes and types. Source: PolyBot §4.1."""

from __future__ import annotations

from http.client import responses
from typing import TYPE_CHECKING, Any

from bigcrawl_report.tables import Column, Section, Table, share_of

if TYPE_CHECKING:
    from bigcrawl.views.figures import CrawlFigures
    from bigcrawl_report.rates import HistoryRates

SHARE = Column("share", "share", has_bar=True)


def polybot(of: CrawlFigures, rates: HistoryRates) -> Section:
    return Section(
        "requests",
        "Requests and answers",
        "Counters are exact. Sizes, types and robots.txt answers are counted by nodes in memory and kept every ten "
        "seconds, so that a killed node loses the last ten.",
        [
            _basic_table(of),
            _statuses_table(of),
            _robots_table(of),
            _sizes_table(of),
            _types_table(of),
            _host_structures_table(of, rates),
        ],
    )


def _basic_table(of: CrawlFigures) -> Table:
    errors, retried, robots = of.sum_of("error:"), of.sum_of("retried:"), of.counts["robots"]
    rows = [
        ("HTTP requests", of.requests, 1.0 if of.requests else None),
        ("pages, of any status", of.pages, share_of(of.pages, of.requests)),
        ("network errors", errors, share_of(errors, of.requests)),
        ("tries that were repeated", retried, share_of(retried, of.requests)),
        ("requests for robots.txt", robots, share_of(robots, of.requests)),
    ]
    size = of.counts["bytes"]
    note = f"Mean size of a page: {size // max(1, of.pages):,} bytes. Total data: {size / 1e9:,.3f} GB."
    columns = (Column("requests", "text"), Column("number"), SHARE)
    return Table("requests", "Basic crawl statistics", columns, rows, note, "PolyBot, Table 4.1")


def _statuses_table(of: CrawlFigures) -> Table:
    found = [(name.partition(":")[2], count) for name, count in of.counts.items() if name.startswith("status:")]
    rows = [
        (code, responses.get(int(code), "") if code.isdigit() else "", count, share_of(count, of.pages))
        for code, count in sorted(found, key=lambda row: (-row[1], row[0]))
    ]
    columns = (Column("status", "text"), Column("meaning", "text"), Column("pages"), SHARE)
    return Table("statuses", "Answers by status", columns, rows[:100], source="PolyBot, Table 4.2")


def errors_table(of: CrawlFigures) -> Table:
    rows = _counts_with_shares(of, "error:")
    note = "URLs that ended without an answer, after their retries."
    return Table("errors", "Network errors", (Column("error", "text"), Column("URLs"), SHARE), rows, note)


def dropped_table(of: CrawlFigures) -> Table:
    rows = _counts_with_shares(of, "dropped:")
    note = "URLs that ended without being fetched; forbidden means by robots.txt."
    return Table("dropped", "Not fetched", (Column("reason", "text"), Column("URLs"), SHARE), rows, note)


def unread_table(of: CrawlFigures) -> Table:
    rows = [(row.name, row.times, share_of(row.times, of.pages)) for row in of.counted.unread.rows()]
    note = "Answered URLs by limit or filter, with their share of all pages. Those that failed at one are errors."
    return Table("unread", "Not read, or only in part", (Column("reason", "text"), Column("pages"), SHARE), rows, note)


def _counts_with_shares(of: CrawlFigures, prefix: str) -> list[tuple[str, int, float | None]]:
    found = {name.removeprefix(prefix): count for name, count in of.counts.items() if name.startswith(prefix)}
    whole = sum(found.values())
    ordered = sorted(found.items(), key=lambda row: (-row[1], row[0]))
    return [(name, count, share_of(count, whole)) for name, count in ordered[:100]]


def _robots_table(of: CrawlFigures) -> Table:
    rows = of.counted.robots.rows()
    whole = sum(row.times for row in rows)
    size = sum(row.amount for row in rows)
    cells = [
        (
            row.name,
            responses.get(int(row.name), "") if row.name.isdigit() else "",
            row.times,
            share_of(row.times, whole),
            row.amount,
        )
        for row in rows[:100]
    ]
    columns = (Column("status", "text"), Column("meaning", "text"), Column("requests"), SHARE, Column("bytes", "bytes"))
    note = f"{size:,} bytes of bodies, unpacked; redirects count. “no answer”: the request failed."
    return Table("robots", "Answers to requests for robots.txt", columns, cells, note)


def _sizes_table(of: CrawlFigures) -> Table:
    sizes = of.counted.sizes
    whole = sum(sizes)
    last = max((bits for bits, count in enumerate(sizes) if count), default=-1)
    rows, up_to = [], 0
    first = next((bits for bits, count in enumerate(sizes) if count), 0)
    for bits in range(first, last + 1):
        up_to += sizes[bits]
        upper = "and more" if bits == len(sizes) - 1 else f"to {(1 << bits) - 1:,}"
        name = "0" if not bits else "1" if bits == 1 else f"{1 << bits - 1:,} {upper}"
        rows.append((name, sizes[bits], share_of(sizes[bits], whole), share_of(up_to, whole)))
    columns = (Column("bytes", "text"), Column("answers"), SHARE, Column("up to here", "share"))
    counted = of.counted
    note = (
        f"Of answers with status 200, as transferred, so packed if they came packed; repeated tries count. These have "
        f"{counted.ok_bytes:,} bytes; the {counted.other_answers:,} answers of another status have "
        f"{counted.other_bytes:,}."
    )
    return Table("sizes", "Sizes", columns, rows, note)


def _types_table(of: CrawlFigures) -> Table:
    whole = of.counted.ok_answers
    columns = (
        Column("media type", "text"),
        Column("answers"),
        SHARE,
        Column("bytes", "bytes"),
        Column("mean bytes", "bytes"),
    )
    note = "As answers with status 200 claim in their Content-Type. Rare types are counted together."
    return Table("types", "File types", columns, with_others(of.counted.media_types, whole, 60), note)


def with_others(frequent: Any, whole: int, most: int) -> list[tuple[str, int, float | None, int, int]]:
    rows = frequent.rows()
    cells = [(row.name, row.times, row.amount) for row in rows[:most]]
    others = frequent.others + sum(row.times for row in rows[most:])
    if others:
        cells.append(("(others)", others, frequent.others_amount + sum(row.amount for row in rows[most:])))
    return [(name, count, share_of(count, whole), size, size // max(1, count)) for name, count, size in cells]


def failures_table(of: CrawlFigures) -> Table:
    columns = (
        Column("reason", "text"),
        Column("PLD", "text"),
        Column("fetches"),
        Column("last", "text"),
        Column("example", "text"),
    )
    rows = [(row["reason"], row["pld"], row["fetches"], row["last"], row["example"]) for row in of.errors]
    note = "The most frequent pairs of reason and PLD, counted by tries; the command errors lists more."
    return Table("failing", "What fails most", columns, rows, note, is_long=True)


def _host_structures_table(of: CrawlFigures, rates: HistoryRates) -> Table:
    hosts, delay_s = of.status["hosts"], of.config.politeness.host_delay_ms / 1000
    speeds = [rate for rate in rates.a_second("pages") if rate is not None]
    resting = round(speeds[-1] * delay_s) if speeds else 0
    formula = hosts["ready"] + resting + hosts["snoozed"] + hosts["busy"]
    rows = [
        ("ready hosts, x", hosts["ready"]),
        ("last speed times host delay, s t", resting),
        ("hosts that are down, n_d", hosts["snoozed"]),
        ("hosts that are fetched from, n_t", hosts["busy"]),
        ("host structures by the formula, x + s t + n_d + n_t", formula),
        ("hosts in Redis", sum(hosts.values()) - hosts["snoozed"]),
        ("twice the larger of x and s t", 2 * max(hosts["ready"], resting)),
        ("host records with robots.txt rules, at most", of.host_records),
    ]
    note = (
        "The paper expects fewer than 2 x host structures, if x is kept above s t and few hosts are down. Here URLs "
        "are bounded, by BIGCRAWL_HOT_URLS, and records by BIGCRAWL_HOST_RECORDS."
    )
    columns = (Column("hosts", "text"), Column("number"))
    return Table("host_structures", "Host structures", columns, rows, note, "PolyBot, \u00a73.5")
