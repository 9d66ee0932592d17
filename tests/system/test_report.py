"""The report of a crawl of a million hosts in a real Chromium. Debian's package `chromium`."""

from __future__ import annotations

import asyncio
import subprocess
from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np
import pytest

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.crawl.history import COLUMNS, EVERY_MS, VERSION
from bigcrawl.scheduler.crawl.samples import ROWS_MAX
from bigcrawl_report.files import write_report
from tests.support.observing import tallies_of
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import spawn
from tests.unit.scheduler.world import viewed, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from bigcrawl_report.document import Document
    from tests.unit.scheduler.world import World

pytestmark = pytest.mark.system

HOSTS = 1_000_000
EDGES_AT_ONCE = 50_000
BYTES_MAX = 5_000_000
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def name_of(number: int) -> str:
    return f"pld{number}.example"


async def fill(w: World, node: Node) -> None:
    """A million PLDs that others link to, in the partitions' tables; as many hosts in the tallies; a long history."""
    edges: dict[int, list[tuple[int, int]]] = {}
    tallies = tallies_of(node)
    for number in range(HOSTS):
        name = name_of(number)
        edges.setdefault(node.crawl.partition_of_host(name), []).append((number + 1, node.crawl.keys.of_pld(name)))
        tallies.record_page(f"www.{name}", name, f"2001:db8::{number >> 16:x}:{number & 0xFFFF:x}", 10_000)
        tallies.host_gaps.count_gap(name, 2_000 + number % 5_000, 2_000)
        tallies.record_answer(200, b"type%d/%d" % (number % 50, number % 5_000), b"gzip", number)
    for partition, pairs in edges.items():
        key = node.ownership.owned[partition].keys.inbox
        for at in range(0, len(pairs), EDGES_AT_ONCE):
            data = np.array(pairs[at : at + EDGES_AT_ONCE], dtype="<u8").tobytes()
            await w.client.command("XADD", key, "*", "e", data)
    while any(owned.disk.state.in_degrees.total < len(edges[n]) for n, owned in node.ownership.owned.items()):
        await w.turn(node, 1)
    node.parts.ownership.crawl_budgets.look_again()
    await w.turn(node, 2)
    await node.departure.close()
    now = w.client.now_ms() // EVERY_MS
    rows: list[Any] = []
    for at in range(ROWS_MAX):
        number = now - (ROWS_MAX - at) * 60
        values = [10**6 * at + at % 7 * 10**5] * len(COLUMNS)
        rows += [str(number), msgpack.packb([VERSION, number * EVERY_MS, *values])]
    await w.client.command("HSET", CrawlKeys(w.config.crawl.name).history, *rows)


def written(tmp_path: Path, redis_url: str) -> Document:
    """The report of that crawl."""

    async def scenario() -> Document:
        async with world(tmp_path / "state", "large", redis_url, host_delay=0) as w:
            await fill(w, await w.joined())
            return await viewed(w.config, write_report, tmp_path / "report")

    return asyncio.run(scenario())


def opened(page: Path, profile: Path) -> tuple[str, str]:
    """Open a page in Chromium. Return its DOM once it has loaded, and what Chromium says on its console."""
    command = ["/usr/bin/chromium", *FLAGS, f"--user-data-dir={profile}", "--window-size=1280,900"]
    process = spawn(
        [*command, "--enable-logging=stderr", "--dump-dom", page.as_uri()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    dom, said = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()
    return dom.decode(), "\n".join(line for line in said.decode().splitlines() if "CONSOLE" in line)


def test_report_of_a_million_hosts_is_small_and_opens_at_once(tmp_path: Path) -> None:
    """All plots are drawn and nothing is wrong in the console. What is drawn is bounded by the bytes of the page."""
    with PrivateRedis() as server:
        document = written(tmp_path, server.url)
    tables = document.to_json()["tables"]
    figures = {row[0]: row[1] for row in tables["figures"]["rows"]}
    assert figures["PLDs that another PLD links to"] == f"{HOSTS:,}"
    assert figures["links from PLD to PLD"] == f"{HOSTS:,}"
    assert abs(int(figures["hosts that answered"].replace(",", "")) / HOSTS - 1) < 0.07
    assert all(row[4] == 1 for row in tables["plds"]["rows"]), "in-degrees are those of the tables"
    assert len(tables["rates"]["rows"]) > 300
    page = tmp_path / "report" / "report.html"
    assert page.stat().st_size < BYTES_MAX
    dom, said = opened(page, tmp_path / "profile")
    assert not said
    assert dom.count("<canvas") == dom.count("data-plot=") == len([p for p in document.plots if len(p.x) > 1]) >= 6
    assert "data-loaded-ms=" in dom, "the page's script ran to its end"
