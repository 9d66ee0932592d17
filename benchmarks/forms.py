"""`python -m benchmarks.forms`: how many queries the records behind a form take, with a crawl that is killed meanwhile.

A site has a database of records with words by Zipf's law behind a form of a word and a kind. It shows at most a hundred
results a query, on pages of twenty. A crawl with the spider `forms` finds the records, and is killed by `kill -9` and
started again. By the site's log the benchmark prints how many records were shown after how many queries, beside those
of words drawn at random, and whether the crawl was polite: its delay, robots.txt, and no form but the search.

Promised are 95 % of the records, with at most `--queries` queries, politely, and no page of results asked for twice
but those in flight at a kill. The exit status is 1 if something of that was missed. `--svg FILE` draws the curve.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from benchmarks.crawl.report import aligned, say
from benchmarks.svg_plot import Axis, Line, svg_of
from bigcrawl_forms.campaign import NO_WORD
from tests.support.crawling.crawls import Crawl
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until
from tests.support.servers.searched_site import CHANGING, FORBIDDEN, PAGE, SearchedSite, new_records

PROMISED: Final = 0.95
WIDTH: Final = 2
CRAWL_S_MAX: Final = 3_600
_TICK_S: Final = 0.012  # of the kernel, by which an arrival may be logged early


class Found(NamedTuple):
    """What the site's log says."""

    curve: list[int]
    """Records that were shown after each query."""
    fetched: int
    repeated: int
    """Pages of results that were asked for more than once."""
    least_gap_s: float
    faults: list[str]
    """Requests for what is forbidden, or changes something."""


def main() -> int:
    options = _parser().parse_args()
    site = SearchedSite(new_records(options.records, seed=options.seed))
    with tempfile.TemporaryDirectory(prefix="bigcrawl-forms-") as directory, ExitStack() as stack:
        stack.enter_context(site.serving())
        item = _crawled(Path(directory), stack, site, options)
    found = _found(site)
    chance = _by_chance(site, len(found.curve))
    needed = next((at for at, shown in enumerate(found.curve, 1) if shown >= PROMISED * options.records), None)
    rows = [("queries", "records", "share", "of words by chance")]
    for at in [*range(20, len(found.curve), 20), len(found.curve)]:
        share, by_chance = found.curve[at - 1] / options.records, chance[at - 1] / options.records
        rows.append((f"{at}", f"{found.curve[at - 1]:,}", f"{share:.1%}", f"{by_chance:.1%}"))
    say(*aligned(rows))
    say(
        f"95 % of {options.records:,} records after {needed} queries; {found.fetched:,} of them were fetched",
        f"estimated: {item['estimated']:,} ({item['low']:,} to {item['high']:,}); stopped by {item['stopped']} after "
        f"{item['queries']} queries",
        f"{len(site.hits):,} requests, {found.repeated} pages of results twice, {options.kills} kills; least rest "
        f"{found.least_gap_s * 1_000:.0f} ms of {options.delay * 1_000:.0f} ms; {len(found.faults)} faults",
    )
    if options.svg:
        options.svg.write_text(_drawn(found.curve, chance, options.records), "utf-8")
    missed = [
        name
        for name, is_met in {
            "records": found.fetched >= PROMISED * options.records,
            "queries": needed is not None and needed <= options.queries,
            "delay": found.least_gap_s >= options.delay - _TICK_S,
            "faults": not found.faults,
            "repeated": found.repeated <= options.kills * WIDTH,
        }.items()
        if not is_met
    ]
    say(f"MISSED: {', '.join(missed)}" if missed else "all met")
    return int(bool(missed))


def _crawled(directory: Path, stack: ExitStack, site: SearchedSite, options: argparse.Namespace) -> dict[str, Any]:
    """Crawl the site over kills, and return the last item of its form.

    Raises:
        RuntimeError: the crawl failed; the message has the end of its log.
    """
    redis = stack.enter_context(PrivateRedis())
    items = directory / "items.jsonl"
    settings = {
        "BIGCRAWL_REDIS_URL": redis.url,
        "BIGCRAWL_HOST_DELAY": options.delay,
        "BIGCRAWL_WARC_DIR": "",
        "SPIDER_MODULES": "bigcrawl_forms.spider",
        "FEEDS": json.dumps({str(items): {"format": "jsonlines"}}),
        "TELNETCONSOLE_ENABLED": False,
    }
    arguments = {"queries": str(options.queries), "width": str(WIDTH)}
    crawl = Crawl(directory / "crawl", [site.url], settings, arguments=arguments, spider="forms")
    stack.enter_context(crawl)
    for kill in range(options.kills):
        crawl.start()
        wait_until(partial(_has, site, (kill + 1) * options.records // (options.kills + 1)), "a part", CRAWL_S_MAX)
        crawl.kill()
        say(f"killed after {len(site.hits):,} requests")
    if crawl.run(CRAWL_S_MAX):
        raise RuntimeError(f"the crawl failed:\n{crawl.log.read_text()[-2000:]}")
    told = map(json.loads, items.read_text("utf-8").splitlines())
    *_, item = (one for one in told if one["action"] == f"{site.url}search")
    found: dict[str, Any] = item
    return found


def _has(site: SearchedSite, hits: int) -> bool:
    return len(site.hits) >= hits


def _found(site: SearchedSite) -> Found:
    hits = sorted(site.hits, key=lambda hit: hit.begin)
    asked = [hit.target for hit in hits if hit.path == "/search"]
    shown: set[int] = set()
    points: dict[tuple[str, str], int] = {}
    for target in asked:
        query = parse_qs(urlsplit(target).query, keep_blank_values=True)
        term, kind, page = (query.get(name, [""])[0] for name in ("q", "kind", "page"))
        number = int(page or 1)
        if term != NO_WORD:
            shown.update(site.found(term, kind)[(number - 1) * PAGE : number * PAGE])
            points[term, kind] = len(shown)
    curve: list[int] = []
    for records in points.values():
        curve.append(max(records, curve[-1] if curve else 0))
    return Found(
        curve,
        len({hit.path for hit in hits if hit.path.startswith("/record/")}),
        sum(count - 1 for count in Counter(asked).values()),
        min(later.begin - hit.end for hit, later in pairwise(hits)),
        [hit.target for hit in hits if hit.method != "GET" or hit.path in CHANGING or hit.path.startswith(FORBIDDEN)],
    )


def _by_chance(site: SearchedSite, queries: int) -> list[int]:
    """Return how many records as many words show that are drawn from all words of the database."""
    words = sorted({word for record in site.records for word in record.words})
    shown: set[int] = set()
    curve = []
    for word in Random(3).sample(words, queries):
        shown.update(site.found(word))
        curve.append(len(shown))
    return curve


def _drawn(curve: list[int], chance: list[int], records: int) -> str:
    last = -(-len(curve) // 50) * 50
    x, y = Axis("queries", 0, last, range(0, last + 1, 50)), Axis("records", 0, records, range(0, records + 1, 500))
    lines = [
        Line("chosen words", [(0, 0), *enumerate(curve, 1)]),
        Line("words by chance", [(0, 0), *enumerate(chance, 1)]),
        Line("95 %", [(0, PROMISED * records), (last, PROMISED * records)], is_dashed=True),
    ]
    return svg_of("Records found by queries", x, y, lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forms", description=__doc__)
    add = parser.add_argument
    add("--records", type=int, default=3_000, help="default 3,000")
    add("--queries", type=int, default=200, help="at most; default 200")
    add("--delay", type=float, default=0.05, help="of the host, in seconds; default 0.05")
    add("--kills", type=int, default=2, help="by kill -9; default 2")
    add("--seed", type=int, default=11, help="of the database; default 11")
    add("--svg", type=Path, help="file to draw the curve into")
    return parser


if __name__ == "__main__":
    sys.exit(main())
