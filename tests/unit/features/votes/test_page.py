"""What pages say of the URLs that they link to: each vote to its URL's partition, added up by URL."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scrapy import Request, Spider

from bigcrawl.clock import ManualClock
from bigcrawl.features.votes import page as module
from bigcrawl.features.votes.page import Ballot, PageVotes, observer_of
from bigcrawl.features.votes.ranks import BASE, received_of, share_of
from bigcrawl.features.votes.rows import KINDS, VOTED
from bigcrawl.links import Links
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.revisiting.visit import Visit
from bigcrawl.scheduler.node.outbox import Outbox
from bigcrawl.scheduler.records.body import with_known
from bigcrawl.scheduler.records.inbox_entry import OBSERVED
from bigcrawl.scheduler.records.observed import unpack_observed
from tests.support.keys import partition_of, url_key
from tests.support.observing import Sent, node_side
from tests.unit.scheduler.records.test_held_urls import held_url
from tests.unit.scheduler.test_scheduler import new_scheduler
from tests.unit.scheduler.world import connected, queued, world

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bigcrawl.scheduler.handout.observers import WaitingRows

PARTITIONS = 4
PAGE = "http://www.a.example/page"
BY_RANKS = {"BIGCRAWL_PRIORITIZER": "opic"}


def page_votes(settings: Mapping[str, object] = BY_RANKS, partitions: int = PARTITIONS) -> PageVotes:
    carried: list[WaitingRows] = []
    votes = observer_of(node_side(Sent(), {"BIGCRAWL_PARTITIONS": partitions, **settings}, carry=carried.append))
    assert votes is not None
    assert carried == [votes]
    return votes


def ballot(votes: PageVotes, urls: list[str], priority: int = 0, received: float = 0.0) -> Ballot:
    made = Ballot(votes, PAGE, received)
    made.add(urls, priority)
    return made


def votes_of(votes: PageVotes) -> dict[int, tuple[float, int]]:
    """What waits, taken: share and priority by key."""
    taken = b"".join(votes.take(partition) for partition in range(PARTITIONS))
    return {key: (share, given) for key, share, given in np.frombuffer(taken, dtype=KINDS[VOTED]).tolist()}


def test_a_page_divides_its_rank_among_the_urls_that_it_links_to() -> None:
    """Each counts once, in any number of batches; the page itself does not; a vote goes to its URL's partition."""
    votes, urls = page_votes(), ["http://x.b.example/1", "http://c.example/"]
    made = ballot(votes, [*urls, PAGE], received=2.0)
    made.add([urls[0], "not a url"], priority=4)
    made.end()
    taken = np.frombuffer(votes.take(partition_of("b.example", PARTITIONS)), dtype=KINDS[VOTED])
    assert taken["key"].tolist().count(url_key(urls[0])) == 1
    made.end()
    assert votes_of(votes)[url_key(urls[0])] == pytest.approx((share_of(2.0, 3), 4))


def test_a_page_that_is_visited_again_hands_on_nothing_more() -> None:
    """Else pages that change often would raise what they link to with each visit. Priorities count."""
    votes, url = page_votes(), "http://b.example/"
    again = Ballot(votes, PAGE, 2.0, hands_on=False)
    again.add([url], 30)
    again.end()
    assert votes_of(votes) == {url_key(url): (0.0, 30)}
    again.end()
    assert votes_of(votes) == {}


def test_votes_for_a_url_are_added_up_until_they_are_sent() -> None:
    """The sum of shares, the highest priority; what was taken does not come again."""
    votes, url = page_votes(), "http://b.example/"
    for priority in (1, 50, -3):
        ballot(votes, [url], priority).end()
    found = votes_of(votes)
    assert found.pop(url_key(url)) == pytest.approx((3 * 0.85 * BASE, 50))
    assert found == {}
    assert votes_of(votes) == {}
    Ballot(votes, PAGE, 1.0).end()
    assert votes_of(votes) == {}, "a page without links has nobody to hand on to"


def test_without_ranks_a_vote_of_a_level_is_sent_once_in_a_while() -> None:
    """A higher level is another vote. After Redis has forgotten, all count as new."""
    votes, url = page_votes({"BIGCRAWL_LINK_VOTES": True}), "http://b.example/"
    found = []
    for priority in (1, 9, 50, 1):
        ballot(votes, [url], priority).end()
        found.append(votes_of(votes).get(url_key(url)))
    assert found == [(0.0, 1), None, (0.0, 50), None]
    votes.send_again()
    ballot(votes, [url], 1).end()
    assert votes_of(votes) == {url_key(url): (0.0, 1)}


def test_what_waits_and_what_a_page_says_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """While Redis is away, votes for further URLs are lost and counted; links beyond a page's bound have no share."""
    monkeypatch.setattr(module, "VOTES_MAX", 3)
    monkeypatch.setattr(module, "BALLOT_URLS_MAX", 4)
    votes = page_votes()
    made = ballot(votes, [f"http://b.example/{n}" for n in range(9)])
    assert len(made.priorities) == 4
    made.end()
    made.end()
    assert (len(votes_of(votes)), votes.lost) == (3, 2)
    made.end()
    assert votes.lost == 3, "there is room again"


def test_many_votes_are_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    """They get a batch of their own if no URLs for their partition are found."""
    monkeypatch.setattr(module, "_OVERDUE_VOTES", 4)
    votes, at = page_votes(), partition_of("b.example", PARTITIONS)
    ballot(votes, ["http://b.example/1", "http://b.example/2", "http://b.example/3"]).end()
    assert votes.overdue() == []
    ballot(votes, ["http://b.example/4"]).end()
    assert votes.overdue() == [at]


def test_votes_travel_with_urls_and_count_as_urls(
    crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each once. Many get a batch of their own. While no owner merges them, spiders wait in the end."""
    monkeypatch.setattr(module, "_OVERDUE_VOTES", 10)

    async def scenario() -> None:
        async with connected(redis_url) as client:
            votes = page_votes(partitions=1)
            outbox = Outbox("node", crawl_name, 20, ManualClock(), partitions=1)
            outbox.carry(votes)

            async def sent(count: int, *, with_url: bool) -> int:
                """Let a page vote for so many URLs; how many votes are in the inbox after the next flush."""
                ballot(votes, [f"http://b.example/{n}" for n in range(count)]).end()
                if with_url:
                    outbox.offer(queued("http://h.example/")[0], 0)
                await outbox.flush(client)
                entries = await client.command("XRANGE", PartitionKeys(crawl_name, 0).inbox, "-", "+")
                rows = [unpack_observed(dict(pairs_of(fields))[OBSERVED]) for _, fields in entries]
                return sum(len(each[VOTED]) for each in rows)

            assert await sent(3, with_url=False) == 0
            assert await sent(3, with_url=True) == 3, "those of both pages, added up"
            assert await sent(12, with_url=False) == 15
            assert outbox.unfolded.urls == 16
            assert not outbox.unfolded.is_full
            assert await sent(12, with_url=False) == 27
            assert outbox.unfolded.is_full

    asyncio.run(scenario())


def test_a_pages_rank_goes_to_what_it_links_to(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Links and plain requests share it, the spider's priority stands, and the next page hands on what it received."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, prioritizer="opic") as w:
            frontier, node = new_scheduler(tmp_path), await w.joined()
            intake = frontier.intake
            frontier.attach(node, Spider("test"))

            async def parse(links: Links, *requests: Request) -> float:
                """Take the next URL, find this on its page, and return what it had received."""
                [held] = await w.take(node)
                page = Request(held.url)
                frontier.started.record_start(page, held)
                noted_by = intake.links_of(page)
                assert noted_by
                for request in requests:
                    intake.record_found(request, held.url, noted_by)
                intake.offer_links(links, links.urls, 1, held.url, noted_by=noted_by)
                for noted in noted_by:
                    noted.end()
                w.end(node, held)
                return received_of(held.fields.flags)

            assert not intake.links_of(Request("http://b.example/")), "it is not the crawl's"
            node.offer(queued("http://a.example/")[0])
            post = Request("http://c.example/", method="POST")
            elsewhere = Request("http://c.example/x", priority=-5)
            assert await parse(Links(["http://b.example/"]), elsewhere, post) == 0
            first = await parse(Links(["http://d.example/", "http://b.example/"]))
            assert first == pytest.approx(share_of(0, 2), rel=0.1)
            assert await parse(Links([])) == pytest.approx(share_of(first, 1), rel=0.1), "the page itself has no share"

    asyncio.run(scenario())


def test_a_page_that_was_fetched_before_hands_on_no_rank(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """It did so at its first visit."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, prioritizer="opic", revisit="periodic") as w:
            frontier, node = new_scheduler(tmp_path), await w.joined()
            frontier.attach(node, Spider("test"))
            known = Visit(1, 100, 100, 100, 200, False, b"digest", b"", b"").pack()
            new, visited = queued("http://a.example/new", "http://a.example/visited")
            for url in (new, visited._replace(body=with_known(visited.body, known))):
                node.offer(url)
                [held] = await w.take(node)
                page = Request(held.url)
                frontier.started.record_start(page, held)
                [ballot] = frontier.intake.links_of(page)
                assert isinstance(ballot, Ballot)
                assert ballot.hands_on is (held.url == "http://a.example/new")
                w.end(node, held)

    asyncio.run(scenario())


def test_without_votes_nothing_is_noted(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Nothing is noted of a page's links."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            frontier, node = new_scheduler(tmp_path), await w.joined()
            frontier.attach(node, Spider("test"))
            page, held = Request("http://a.example/"), held_url(1)
            frontier.started.record_start(page, held)
            assert not frontier.intake.links_of(page)

    asyncio.run(scenario())
