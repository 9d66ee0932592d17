"""Rows of a crawl's history: what is written is read again, column by column, also what older versions wrote."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgpack
import pytest

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.history import COLUMNS, TIME_S, VERSION, Sample, columns_of, packed, read_history
from bigcrawl.scheduler.crawl.survey import Survey
from bigcrawl.stats import CRAWL_COUNTERS
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import connected

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNTS = {
    "status:200": 5,
    "status:204": 1,
    "status:301": 2,
    "status:404": 3,
    "status:503": 4,
    "status:100": 1,
    "error:dns": 6,
    "error:timeout": 1,
    "dropped:forbidden": 7,
    "dropped:unresolved": 2,
    "retried:status:503": 8,
    "retried:error:timeout": 1,
    "robots": 9,
    "bytes": 2**40,
    "ended": 32,
}


def sample_of(counts: Mapping[str, int], *reports: dict[str, Any], **sums: Any) -> Sample:
    return Sample(
        Survey(4, counts=Counter(counts), **sums), {f"n{number}": each for number, each in enumerate(reports)}
    )


def test_figures_are_those_of_the_survey_and_of_the_nodes() -> None:
    """Statuses by class, errors and drops of all reasons, sums of what nodes report."""
    reports = [{"outbox": 3, "stages": {"started": 2, "ended": 9}}, {"outbox": 4, "stages": {}}, {}]
    row = packed(sample_of(COUNTS, *reports, urls_disk=11, hosts_ready=12, owned=3), 5_500)
    columns = columns_of([row])
    found = {name: values[0] for name, values in columns.items()}
    assert found[TIME_S] == 5.5
    wanted = {
        "pages": 16,
        "status_2xx": 6,
        "status_3xx": 2,
        "status_4xx": 3,
        "status_5xx": 4,
        "errors": 7,
        "dropped": 9,
        "robots_forbidden": 7,
        "retries": 9,
        "robots_fetches": 9,
        "bytes": 2**40,
        "ended": 32,
        "urls_disk": 11,
        "hosts_ready": 12,
        "partitions_owned": 3,
        "nodes": 3,
        "started": 2,
        "outbox": 7,
    }
    assert {name: found[name] for name in wanted} == wanted
    assert not {name for name, value in found.items() if value} - {*wanted, TIME_S}


def test_columns_are_named_once_and_have_units() -> None:
    """A name that is a counter of the crawl means that counter."""
    names = [column.name for column in COLUMNS]
    assert len({*names, TIME_S}) == len(names) + 1
    counters = {row.key: row for row in CRAWL_COUNTERS}
    for column in COLUMNS:
        assert column.kind in ("counter", "gauge")
        assert column.unit
        assert column.meaning.endswith(".")
        if column.name in counters:
            assert counters[column.name].kind == column.kind, column.name


def test_old_rows_keep_their_columns() -> None:
    """New columns stand behind those that Redis may hold in rows of months ago. So these never change."""
    first = ("pages", "status_2xx", "status_3xx", "status_4xx", "status_5xx", "errors", "dropped", "robots_forbidden")
    assert tuple(column.name for column in COLUMNS[:8]) == first
    assert COLUMNS[33].name == "outbox", "the last of version 1"


@pytest.mark.parametrize(
    "row",
    [
        b"",
        b"\xc1",
        msgpack.packb({"a": 1}),
        msgpack.packb([]),
        msgpack.packb([VERSION]),
        msgpack.packb([VERSION + 1, 1_000, 5]),
        msgpack.packb([VERSION, 1_000, "five"]),
        packed(sample_of({}), 1_000)[:-1],
        packed(sample_of({}), 1_000) + b"\0",
    ],
)
def test_row_that_cannot_be_read_is_left_out(row: bytes) -> None:
    """The others are shown."""
    good = packed(sample_of({"status:200": 1}), 2_000)
    assert columns_of([row, good])["pages"] == [1]
    assert columns_of([row, good])[TIME_S] == [2.0]


def test_short_row_lacks_the_last_values_and_a_long_one_is_cut() -> None:
    """The one is of an older version of bigcrawl, the other of a newer one."""
    short, long = msgpack.packb([VERSION, 1_000, 7]), msgpack.packb([VERSION, 500, *range(len(COLUMNS) + 3)])
    columns = columns_of([short, long])
    assert columns[TIME_S] == [0.5, 1.0], "ascending, whatever the order of the rows"
    assert columns["pages"] == [0, 7]
    assert columns[COLUMNS[-1].name] == [len(COLUMNS) - 1, None]
    assert list(columns) == [TIME_S, *(column.name for column in COLUMNS)]


@awaited
async def test_history_is_read_with_one_command(crawl_name: str, redis_url: str) -> None:
    """A crawl without samples has empty columns."""
    async with connected(redis_url) as client:
        assert {*map(tuple, (await read_history(client, crawl_name)).values())} == {()}
        for number in range(3):
            row = packed(sample_of({"status:200": number}), 10_000 * number)
            await client.command("HSET", CrawlKeys(crawl_name).history, str(number), row)
        before = client.round_trips
        assert (await read_history(client, crawl_name))["pages"] == [0, 1, 2]
        assert client.round_trips == before + 1
