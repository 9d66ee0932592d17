"""A report in Redis that nobody can read ends no node, and no command."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

import pytest

from bigcrawl.commands.looking.status import nodes
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.alike import BEATS, FIELD, SINCE, VERSION
from bigcrawl.scheduler.crawl.node_reports import read_report
from bigcrawl.scheduler.node.progress import REPORTED
from bigcrawl.views.status import status_of
from tests.support.running.tables import each
from tests.unit.scheduler.world import viewed, world

if TYPE_CHECKING:
    from pathlib import Path

DAMAGED = [
    *("[" * 100_000, "[]", '"text"', "7", "no JSON", '{"token": 7}', '{"name": null}', '{"owned": "0-99999999"}'),
    *('{"owned": "a"}', '{"capacity": 0}', '{"capacity": NaN}', '{"capacity": -1}', '{"late_ms": "7"}'),
    *('{"rate": Infinity}', '{"held": []}', '{"partitions": "1"}', '{"stages": []}'),
    *(f'{{"{FIELD}": []}}', f'{{"{FIELD}": {{}}, "{VERSION}": 7}}', f'{{"{SINCE}": "a"}}', f'{{"{BEATS}": {{}}}}'),
]


@each("text", DAMAGED)
def test_damaged_report_is_refused_by_its_field(text: str) -> None:
    with pytest.raises(ValueError, match=r"it is|it must be|its |Expecting"):
        read_report(text)


def test_node_that_has_said_nothing_has_no_fields() -> None:
    assert read_report("") == {}
    assert read_report('{"owned": "0-3,7", "else": [1]}') == {"owned": "0-3,7", "else": [1]}


def test_compared_fields_are_reported(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A field that no node sends never differs."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            membership = (await w.joined()).parts.crawl.membership
            assert set(REPORTED) <= membership.reports[membership.node].keys()

    asyncio.run(scenario())


@pytest.mark.parametrize("text", [*DAMAGED, '{"owned": "999999"}'])
def test_node_works_beside_one_whose_report_is_damaged(
    tmp_path: Path, crawl_name: str, redis_url: str, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    """It beats, takes its share, and commands show both; the log says whose report it is, in one line."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            keys, client, membership = CrawlKeys(crawl_name), node.parts.crawl.client, node.parts.crawl.membership
            await client.commands([("ZADD", keys.beats, client.now_ms(), "other"), ("HSET", keys.nodes, "other", text)])
            await membership.beat(client, {}, [])
            assert "other" in membership.reports
            assert len(membership.wanted([])) == w.config.crawl.partitions // 2
            shown = await asyncio.to_thread(nodes, w.config, (), argparse.Namespace())
            assert "other" in {row["node"] for row in shown.data["nodes"]}
            assert "other" in (await viewed(w.config, status_of))["nodes"]

    asyncio.run(scenario())
    said = [record.getMessage() for record in caplog.records if "the report of node other is ignored" in record.message]
    assert all(len(line) < 200 and "\n" not in line for line in said)
    assert said or text == '{"owned": "999999"}'
