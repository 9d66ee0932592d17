"""What links say: each edge between pay-level domains once."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.budgets.units import BudgetUnits
from bigcrawl.scheduler.node import link_graph as module
from bigcrawl.scheduler.node.link_graph import LinkGraph
from tests.support.keys import partition_of, pld_key
from tests.unit.scheduler.world import ADDRESS, world

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("twin")

PARTITIONS = 4
PAGE = "http://www.a.example/page"


def pld_of(host: str) -> str:
    """The last two labels."""
    return ".".join(host.split(".")[-2:])


def graph() -> LinkGraph:
    return LinkGraph(pld_of, pld_key, PARTITIONS)


def edges_of(links: LinkGraph) -> dict[int, list[tuple[int, int]]]:
    """What waits, taken."""
    taken = {partition: links.take(partition) for partition in range(PARTITIONS)}
    return {partition: list(struct.iter_unpack("<QQ", edges)) for partition, edges in taken.items() if edges}


def edge(source: str, target: str) -> tuple[int, int]:
    return pld_key(source), pld_key(target)


def test_links_within_a_pld_are_no_edges() -> None:
    """Neither to the page's own host nor to another of its PLD, whatever the scheme or port."""
    links = graph()
    links.note(PAGE, ["http://www.a.example/", "https://b.a.example/x", "http://a.example:8080/"])
    assert edges_of(links) == {}


def test_edge_goes_to_the_partition_of_its_target() -> None:
    """That is whose in-degree it raises."""
    links = graph()
    links.note(PAGE, ["http://x.b.example/1", "http://y.b.example/2", "http://c.example/"])
    found = edges_of(links)
    assert found.pop(partition_of("b.example", PARTITIONS), []).count(edge("a.example", "b.example")) == 1
    others = [pair for pairs in found.values() for pair in pairs]
    assert set(others) <= {edge("a.example", "c.example")}
    assert partition_of("b.example", PARTITIONS) == partition_of("c.example", PARTITIONS) or others


def test_link_to_a_unit_raises_its_in_degree_too() -> None:
    """In the partition of its domain, unless it is of the page's own."""
    units = BudgetUnits(("*.blogs.example", "www.homes.example/~"), 3, pld_of, pld_key, pld_of)
    links = LinkGraph(pld_of, pld_key, PARTITIONS, units=units)
    urls = ["http://ann.blogs.example/1", "http://ann.blogs.example/2", "http://www.homes.example/~bob/x.html"]
    links.note(PAGE, urls)
    found = edges_of(links)
    expected = {("blogs.example", "ann.blogs.example"), ("homes.example", "www.homes.example/~bob/")}
    for pld, unit in expected:
        edges = found[partition_of(pld, PARTITIONS)]
        assert edges.count(edge("a.example", pld)) == 1
        assert edges.count((pld_key("a.example"), units.key_of(unit))) == 1
    assert sum(map(len, found.values())) == 4
    links.note("http://bob.blogs.example/", ["http://ann.blogs.example/1"])
    assert edges_of(links) == {}


def test_pair_is_told_once_in_a_while() -> None:
    """Not again from another page or for another URL; the other way round is another edge."""
    links = graph()
    links.note(PAGE, ["http://b.example/1"])
    assert sum(map(len, edges_of(links).values())) == 1
    links.note("http://other.a.example/", ["http://www.b.example/2"])
    assert edges_of(links) == {}
    links.note("http://b.example/1", [PAGE])
    assert [pair for pairs in edges_of(links).values() for pair in pairs] == [edge("b.example", "a.example")]


def test_forgotten_pair_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered is bounded: a pair of long ago is told twice, and counted once by its owner."""
    monkeypatch.setattr(module, "RECENT_EDGES", 16)
    monkeypatch.setattr(module, "RECENT_EDGES_MAX", 16)
    links = graph()
    links.note(PAGE, ["http://b.example/"])
    for i in range(500):
        links.note(f"http://a{i}.example/", ["http://c.example/"])
    edges_of(links)
    links.note(PAGE, ["http://b.example/"])
    assert sum(map(len, edges_of(links).values())) == 1


def test_what_is_no_url_gives_nobody_a_good_name() -> None:
    """A page of a strange scheme, or links that are none, stop nothing."""
    links = graph()
    links.note("nowhere", ["http://b.example/"])
    links.note("", ["http://b.example/"])
    links.note(PAGE, ["nonsense"])
    assert edges_of(links) == {}


def test_many_edges_without_urls_are_overdue() -> None:
    """A partition that gets no URLs from this node gets its edges all the same."""
    links = graph()
    for i in range(63):
        links.note(f"http://a{i}.example/", ["http://b.example/"])
    assert links.overdue() == []
    links.note("http://last.example/", ["http://b.example/"])
    assert links.overdue() == [partition_of("b.example", PARTITIONS)]
    assert len(links.take(links.overdue()[0])) == 64 * 16
    assert links.overdue() == []


def test_in_degrees_by_address_count_a_server_once() -> None:
    """However many domains it has; of a host without a known address nothing is said."""
    servers = {"www.a.example": 1, "www.b.example": 1, "www.c.example": 2}
    links = LinkGraph(pld_of, pld_key, PARTITIONS, servers.get)
    for host in (*servers, "www.unknown.example"):
        links.note(f"http://{host}/page", ["http://target.example/", f"http://other.{pld_of(host)}/"])
    assert [pair for pairs in edges_of(links).values() for pair in pairs] == [
        (1, pld_key("target.example")),
        (2, pld_key("target.example")),
    ]


def test_node_counts_links_by_the_addresses_that_it_knows(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The two sites are at one address here; no look-up is made for a third, whose page was not fetched."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, in_degree="address") as w:
            node = await w.joined()
            links, crawl = node.link_graph, node.crawl
            assert links is not None
            for host in ("www.a.example", "www.b.example"):
                await node.parts.gates.dns.lookup(host)
            for host in ("www.a.example", "www.b.example", "www.c.example"):
                links.note(f"http://{host}/page", ["http://target.example/"])
            edges = links.take(crawl.partition_of_host("target.example"))
            assert list(struct.iter_unpack("<QQ", edges)) == [(crawl.pld_key(ADDRESS), crawl.pld_key("target.example"))]

    asyncio.run(scenario())
