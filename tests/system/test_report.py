"""The report in a real Chromium: of a crawl of a million hosts, and at any width in both schemes.

Debian's packages `chromium` and `chromium-driver`; axe-core by `scripts/install_axe`.
"""

from __future__ import annotations

import asyncio
import subprocess
from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np
import pytest

from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.budgets.in_degrees import are_ranked
from bigcrawl.scheduler.crawl.history import COLUMNS, EVERY_MS, VERSION
from bigcrawl.scheduler.crawl.samples import ROWS_MAX
from bigcrawl_report.command import write_files, write_report
from bigcrawl_report.document import document_of
from tests.annexes.report.figures import BEGUN_S, figures_of, full_tallies, history_of
from tests.support.browsing.chromium import FLAGS, SCHEMES, WIDTHS, chromium, console_errors, resize
from tests.support.browsing.layout import accessibility, layout_faults
from tests.support.browsing.lighthouse import SCORE_MIN
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
UNRANKED_MAX = 100  # PLDs whose keys look like those of units; 15 are likely
BYTES_MAX = 5_000_000


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
    ranked = are_ranked(np.array([key for pairs in edges.values() for _, key in pairs], dtype=np.uint64))
    while sum(owned.disk.state.in_degrees.total for owned in node.ownership.owned.values()) < ranked.sum():
        await w.turn(node, 1)
    node.parts.ownership.crawl_budgets.mark_stale()
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
    linked = int(figures["PLDs that another PLD links to"].replace(",", ""))
    assert HOSTS - UNRANKED_MAX <= linked <= HOSTS
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


def test_layout_has_no_fault_and_nothing_keeps_people_out(tmp_path: Path) -> None:
    """No text lies on other text, nothing is cut, no window scrolls sideways, and axe-core finds nothing."""
    times = [10.0 * n for n in range(60)] + [900.0 + 10 * n for n in range(60)]
    error = {
        "reason": "status:404",
        "pld": "a.example",
        "fetches": 9,
        "last": "",
        "example": f"http://a.example/{'x' * 300}",
    }
    events = [{"at": BEGUN_S + 800, "kind": "node_died", "text": "node a is dead", "node": "a"}]
    figures = figures_of(tmp_path, full_tallies(50), history=history_of(times), errors=[error] * 20)
    write_files(document_of(figures, events), tmp_path / "report")
    with chromium() as browser:
        for width in WIDTHS:
            for scheme in SCHEMES:
                resize(browser, width, scheme)
                browser.get((tmp_path / "report" / "report.html").as_uri())
                browser.execute_script("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
                assert layout_faults(browser) == [], (width, scheme)
                found = accessibility(browser)
                assert (found.violations, found.score >= SCORE_MIN) == ([], True), (width, scheme)
                assert len(browser.find_elements("css selector", "figure canvas")) >= 6
                assert "UTC" in browser.find_element("css selector", ".identity time").text, "the zone is named"
                assert console_errors(browser) == []
