"""What speaks against a crawl that faults happened to: the server's log, the nodes' logs, and the WARC files."""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pyarrow import parquet

from bigcrawl.scheduler.crawl.crawl_record import keys_of
from bigcrawl.scheduler.records.outcomes import VALUE
from bigcrawl.url.canonical import canonicalize
from bigcrawl.warc.files import WARC_SUFFIX
from bigcrawl_simweb.check.checker import CheckRules, check_exchanges
from tests.support.crawling.everything import stored
from tests.support.crawling.verdicts import warc_files, without_untold_gaps
from tests.support.faults.world import DEADLINE_S, DELAY_MS, NAME
from tests.unit.page_index.reference import reference_lines

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl_simweb.check.checker import Exchange, Report
    from tests.support.faults.world import World

_OK, _NOT_MODIFIED = 200, 304
_VISITED = (_OK, _NOT_MODIFIED)


def wrong(world: World) -> list[str]:
    """What the server's log, the nodes' logs and the WARC files say against the crawl."""
    report = held_to_the_rules(world)
    exchanges = world.web.exchanges()
    allowed = world.repeats.allowed(exchanges, world.web.saved.port)
    more: Counter[str] = Counter()
    for again in report.refetched:
        more[again.url] += again.times - 1
    for retried in report.over_retried:
        more[retried.url] += retried.retries - retried.allowed
    more -= Counter(dict.fromkeys(pages_of(world), world.visits - 1))
    world.say(f"{more.total()} fetched again, {allowed.total()} might have been")
    over = more - allowed
    problems = [f"fetched again though it may not be: {url}: {fetches_of(url, exchanges)}" for url in over]
    if report.kinds - {"refetched", "over_retried"}:
        problems.append(str(replace(report, refetched=(), over_retried=())))
    return problems + tracebacks(world) + unvisited(world, exchanges) + unstored(world) + unrecorded(world)


def pages_of(world: World) -> list[str]:
    """The URLs that are pages, and so are visited again."""
    return [url for url, status in world.web.expected().items() if status == _OK]


def unvisited(world: World, exchanges: list[Exchange]) -> list[str]:
    """Pages with fewer visits than they are owed, by the server's log."""
    port = world.web.saved.port
    visits = Counter(f"http://{each.host}:{port}{each.target}" for each in exchanges if each.status in _VISITED)
    fewer = [url for url in pages_of(world) if visits[url] < world.visits]
    if not fewer:
        return []
    told = [f"{url}: {fetches_of(url, exchanges)}" for url in fewer[:10]]
    return ["\n  ".join([f"{len(fewer)} pages have fewer than {world.visits} visits:", *told])]


def fetches_of(url: str, exchanges: list[Exchange]) -> str:
    """When a URL was fetched, for a reader of the story."""
    found = [each for each in exchanges if url.endswith(each.target) and f"//{each.host}:" in url]
    return ", ".join(f"{each.start_ms} to {each.end_ms} status {each.status}" for each in found)


def held_to_the_rules(world: World) -> Report:
    web = world.web
    rules = CheckRules(
        expected=web.expected(),
        port=web.saved.port,
        host_delay_ms=DELAY_MS,
        host_delays_ms=web.web.crawl_delays_ms(),
        retries=2,
        allows=web.web.allows,
    )
    exchanges = [given_up(each, world.asleep_ms) for each in web.exchanges()]
    if world.visits > 1:
        exchanges = [replace(each, status=_OK) if each.status == _NOT_MODIFIED else each for each in exchanges]
    return without_untold_gaps(check_exchanges(exchanges, rules), DELAY_MS)


def given_up(each: Exchange, asleep_ms: list[tuple[int, int]]) -> Exchange:
    """A node that is stopped cannot close its connections; others leave its hosts alone for the fetch deadline."""
    if not any(each.start_ms <= began_ms < each.end_ms for began_ms, _ in asleep_ms):
        return each
    return replace(each, end_ms=min(each.end_ms, each.start_ms + DEADLINE_S * 1000))


def tracebacks(world: World) -> list[str]:
    """Unhandled exceptions in any log of any node, the first of each."""
    found = []
    for node in world.nodes:
        for log in sorted(node.crawl.directory.glob("log*.txt")):
            before, mark, after = log.read_text(errors="replace").partition("Traceback")
            if mark:
                found.append(f"{log}: ...{before[-300:]}{mark}{after[:3000]}")
    return found


def unstored(world: World) -> list[str]:
    """Pages that are in WARC files less often than they were visited, or are not in the indexes."""
    directory = world.pages_directory()
    found = stored(directory)
    owed = Counter(world.web.expected().keys()) + Counter(dict.fromkeys(pages_of(world), world.visits - 1))
    missing = owed - found
    problems = [f"not in any WARC file: {sorted(missing.items())[:10]}, {len(missing)} in all"] if missing else []
    return problems + (unindexed(directory) if world.is_indexed else [])


def unindexed(directory: Path) -> list[str]:
    """WARC files whose CDXJ or Parquet has other captures than the file itself has."""
    problems = []
    for path in warc_files(directory):
        cdxj, table = (path.with_name(path.name.removesuffix(WARC_SUFFIX) + end) for end in (".cdxj", ".parquet"))
        if not (cdxj.exists() and table.exists()):
            problems.append(f"{path} has no index")
            continue
        there = {int(fields["offset"]): fields for _, _, fields in reference_lines(path)}
        lines = [json.loads(line.split(b" ", 2)[2]) for line in cdxj.read_bytes().splitlines()]
        listed = {int(fields["offset"]): fields for fields in lines}
        read = parquet.read_table(table).to_pylist()
        rows = {row["offset"]: (row["url"], row["size"], row["digest"]) for row in read}
        wanted = {offset: (each["url"], int(each["length"]), each["digest"]) for offset, each in there.items()}
        if len(lines) != len(listed) or listed != there:
            problems.append(f"{cdxj} and its file differ at {differing(listed, there)}")
        if len(read) != len(rows) or rows != wanted:
            problems.append(f"{table} and its file differ at {differing(rows, wanted)}")
    return problems


def differing(one: dict[int, Any], other: dict[int, Any]) -> list[int]:
    """Where two tables differ, the first ten of it."""
    return [at for at in sorted(one.keys() | other.keys()) if one.get(at) != other.get(at)][:10]


def unrecorded(world: World) -> list[str]:
    """Pages whose end, or the number of their visits, is not among what the crawl knows in the end."""
    if not (lines := world.exported()):
        return []
    keys = keys_of(lines[0]["record"]["hash_seed"].encode(), NAME)
    ends = table_of(lines, "ends", VALUE)
    visits = table_of(lines, "visits", np.dtype("<u4"))
    urls = {url: keys.of_url(canonicalize(url)) for url in world.web.expected()}
    endless = [url for url, key in urls.items() if key not in ends]
    wrong = {url: visits.get(urls[url]) for url in pages_of(world) if visits.get(urls[url]) != world.visits}
    problems = [f"{len(endless)} URLs have no outcome: {endless[:10]}"] if endless else []
    return problems + ([f"{len(wrong)} pages have other visits recorded: {list(wrong.items())[:10]}"] if wrong else [])


def table_of(lines: list[dict[str, Any]], name: str, kind: np.dtype[Any]) -> dict[int, Any]:
    """A table of all partitions, from the lines of an export."""
    rows: dict[int, Any] = {}
    for line in lines:
        if line.get("table") == name:
            keys = np.frombuffer(base64.b64decode(line["keys"]), "<u8").tolist()
            rows |= dict(zip(keys, np.frombuffer(base64.b64decode(line["values"]), kind).tolist(), strict=True))
    return rows
