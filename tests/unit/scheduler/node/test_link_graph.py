"""What links say: each edge between pay-level domains once, each vote to its URL's partition, added up by URL."""

from __future__ import annotations

import struct

import pytest

from bigcrawl.scheduler.node import link_graph as module
from bigcrawl.scheduler.node.link_graph import Ballot, LinkGraph, PageVotes
from bigcrawl.scheduler.records.votes import BASE, share_of, unpack_votes
from tests.support.keys import partition_of, pld_key, url_key

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


def page_votes(*, has_ranks: bool = True) -> PageVotes:
    return PageVotes(url_key, lambda host: partition_of(pld_of(host), PARTITIONS), has_ranks=has_ranks)


def ballot(urls: list[str], priority: int = 0, received: float = 0.0) -> Ballot:
    made = Ballot(PAGE, received)
    made.add(urls, priority)
    return made


def votes_of(votes: PageVotes) -> dict[int, tuple[float, int]]:
    """What waits, taken: share and priority by key."""
    taken = b"".join(votes.take(partition) for partition in range(PARTITIONS))
    return {key: (share, given) for key, share, given in unpack_votes(taken).tolist()}


def test_a_page_divides_its_rank_among_the_urls_that_it_links_to() -> None:
    """Each counts once, in any number of batches; the page itself does not; a vote goes to its URL's partition."""
    votes, urls = page_votes(), ["http://x.b.example/1", "http://c.example/"]
    made = ballot([*urls, PAGE], received=2.0)
    made.add([urls[0], "not a url"], priority=4)
    votes.cast(made)
    assert unpack_votes(votes.take(partition_of("b.example", PARTITIONS)))["key"].tolist().count(url_key(urls[0])) == 1
    votes.cast(made)
    assert votes_of(votes)[url_key(urls[0])] == pytest.approx((share_of(2.0, 3), 4))


def test_a_page_that_is_visited_again_hands_on_nothing_more() -> None:
    """Else pages that change often would raise what they link to with each visit. Priorities count."""
    votes, url = page_votes(), "http://b.example/"
    again = Ballot(PAGE, 2.0, hands_on=False)
    again.add([url], 30)
    votes.cast(again)
    assert votes_of(votes) == {url_key(url): (0.0, 30)}
    votes.cast(again)
    assert votes_of(votes) == {}


def test_votes_for_a_url_are_added_up_until_they_are_sent() -> None:
    """The sum of shares, the highest priority; what was taken does not come again."""
    votes, url = page_votes(), "http://b.example/"
    for priority in (1, 50, -3):
        votes.cast(ballot([url], priority))
    found = votes_of(votes)
    assert found.pop(url_key(url)) == pytest.approx((3 * 0.85 * BASE, 50))
    assert found == {}
    assert votes_of(votes) == {}
    votes.cast(Ballot(PAGE, 1.0))
    assert votes_of(votes) == {}, "a page without links has nobody to hand on to"


def test_without_ranks_a_vote_of_a_level_is_sent_once_in_a_while() -> None:
    """A higher level is another vote. After Redis has forgotten, all count as new."""
    votes, url = page_votes(has_ranks=False), "http://b.example/"
    found = []
    for priority in (1, 9, 50, 1):
        votes.cast(ballot([url], priority))
        found.append(votes_of(votes).get(url_key(url)))
    assert found == [(0.0, 1), None, (0.0, 50), None]
    votes.send_again()
    votes.cast(ballot([url], 1))
    assert votes_of(votes) == {url_key(url): (0.0, 1)}


def test_what_waits_and_what_a_page_says_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """While Redis is away, votes for further URLs are lost and counted; links beyond a page's bound have no share."""
    monkeypatch.setattr(module, "VOTES_MAX", 3)
    monkeypatch.setattr(module, "BALLOT_URLS_MAX", 4)
    votes = page_votes()
    made = ballot([f"http://b.example/{n}" for n in range(9)])
    assert len(made.priorities) == 4
    votes.cast(made)
    votes.cast(made)
    assert (len(votes_of(votes)), votes.lost) == (3, 2)
    votes.cast(made)
    assert votes.lost == 3, "there is room again"


def test_many_votes_are_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    """They get a batch of their own if no URLs for their partition are found."""
    monkeypatch.setattr(module, "_OVERDUE_VOTES", 4)
    votes, at = page_votes(), partition_of("b.example", PARTITIONS)
    votes.cast(ballot(["http://b.example/1", "http://b.example/2", "http://b.example/3"]))
    assert votes.overdue() == []
    votes.cast(ballot(["http://b.example/4"]))
    assert votes.overdue() == [at]
