"""What links say: each edge between pay-level domains once."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from bigcrawl.scheduler.node import link_graph as module
from bigcrawl.scheduler.node.link_graph import LinkGraph
from tests.support.keys import partition_of, pld_key

if TYPE_CHECKING:
    import pytest

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
