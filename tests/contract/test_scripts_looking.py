"""Scripts that only look: what they say of one host, of lists and of a crawl that is watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.redisdb.keys import CrawlKeys, PartitionKeys
from bigcrawl.redisdb.scripts import looking
from bigcrawl.scheduler.records.member import beginning_of, pack_member
from bigcrawl.scheduler.records.queued_url import QueuedUrl

if TYPE_CHECKING:
    from tests.support.redis_servers.script_world import ScriptRunner

NOW_MS = 1_000_000
LEASE_MS = 60_000


@pytest.fixture
def keys(crawl_name: str) -> PartitionKeys:
    return PartitionKeys(crawl_name, 3)


def test_host_is_read_at_once(runner: ScriptRunner, keys: PartitionKeys) -> None:
    """Also one of which nothing is known; damaged numbers count as none."""
    assert runner.run(looking.look_host(keys, "no.example", 5, NOW_MS)) == (NOW_MS, "", 0, 0, 0.0, -2, {}, [])
    client = runner.client
    client.hset(keys.owner, mapping={"node": "a", "lease_ms": NOW_MS + 1})
    client.zadd(keys.back + "a.example", {b"1:x": 1, b"2:y": 2, b"3:z": 3})
    client.hset(keys.busy, mapping={"a.example": 2, "b.example": "two"})
    client.zadd(keys.ready, {"a.example": NOW_MS + 0.5})
    client.hset(keys.host + "a.example", "why", "error:dns")
    found = runner.run(looking.look_host(keys, "a.example", 2, NOW_MS))
    assert found == (NOW_MS, "a", 3, 2, NOW_MS + 0.5, -1, {b"why": b"error:dns"}, [b"1:x", b"2:y"])
    assert runner.run(looking.look_host(keys, "a.example", 0, NOW_MS + 1))[1] == "", "its lease is over"
    assert runner.run(looking.look_host(keys, "b.example", 2, NOW_MS)).taken == 0


def test_url_is_found_where_it_is(runner: ScriptRunner, keys: PartitionKeys) -> None:
    """Taken, before it is looked for in the back queue; queued, with the URLs ahead; in portions; or only dead."""
    client, last = runner.client, "7-0"
    members = [pack_member(number, QueuedUrl(1_000 + number, "a.example", 0, 0, b"body")) for number in range(6)]
    client.zadd(keys.back + "a.example", {member: number for number, member in enumerate(members)})
    client.zadd(keys.back + "b.example", {pack_member(9, QueuedUrl(2_000, "b.example", 0, 0, b"body")): 9})
    client.hset(keys.taken, 8, b"a.example\n5\n8\n" + pack_member(8, QueuedUrl(1_008, "a.example", 0, 0, b"o:\n")))
    client.hset(keys.deaths, mapping={8: "2 1", 4: "1 1"})
    client.hset(keys.dead, 3_000, "letter")
    client.xadd(keys.inbox, {"b": "merged"}, "6-0")
    client.xadd(keys.inbox, {"b": "one"}, last)
    client.xadd(keys.inbox, {"b": "two"}, "8-0")

    def looked(key: int, at: str = "-inf", urls: int = 100, after: str = "", entries: int = 100) -> looking.UrlView:
        sought = looking.UrlSought("a.example", key, beginning_of(key))
        return runner.run(looking.look_url(keys, sought, at, urls, after, entries))

    found = looked(1_004)
    assert found[:6] == (members[4], 4, None, b"1 1", b"", "0-0")
    assert [entry for entry, _ in found.entries] == [b"6-0", b"7-0", b"8-0"]
    assert looked(1_008)[1:4] == (-1, None, b"2 1")
    assert looked(2_000)[:4] == (b"", -1, None, b""), "it is another host's"
    assert looked(3_000)[:5] == (b"", -1, None, b"", b"letter")
    assert looked(1_004, urls=2)[:3] == (b"", -1, "2")
    assert looked(1_004, at="2", urls=2)[:3] == (b"", -1, "4")
    assert looked(1_004, at="4", urls=2)[:3] == (members[4], 4, None)
    client.hset(keys.state, mapping={"folded": "6-0", "trimmed": "5-0 x"})
    found = looked(1_004, entries=1)
    assert (found.trimmed, [entry for entry, _ in found.entries]) == ("5-0", [b"7-0"])
    assert [entry for entry, _ in looked(1, after=last).entries] == [b"8-0"]


def test_orders_are_read_at_once(runner: ScriptRunner, crawl_name: str) -> None:
    keys, client = CrawlKeys(crawl_name), runner.client
    assert runner.run(looking.look_orders(keys, "discovery")) == ({}, {}, b"", [])
    client.hset(keys.blacklist, "a.example", "1")
    client.hset(keys.rules, "b.example", "{}")
    client.hset(keys.control, mapping={"discovery": "off 5", "speed": "3"})
    client.hset(keys.nodes, "n", "report")
    found = runner.run(looking.look_orders(keys, "discovery"))
    assert found == ({b"a.example": b"1"}, {b"b.example": b"{}"}, b"off 5", [b"report"])


def test_hosts_that_are_due_first_are_listed(runner: ScriptRunner, keys: PartitionKeys) -> None:
    """By state and name, and no more of them than asked for; the list says if others were not looked at."""
    client = runner.client
    client.hset(keys.busy, "busy.example", 1)
    client.zadd(keys.ready, {f"h{number}.example": NOW_MS - 50 + 10 * number for number in range(20)})
    client.zadd(keys.ready, {"busy.example": 5, "rests.example": NOW_MS + 9_000})
    client.zadd(keys.snoozed, {"rests.example": NOW_MS + 9_000, "gone.example": 1e15 + 5})

    def listed(state: str = "", name: str = "", most: int = 50, looked: int = 1_000) -> list[str]:
        found = runner.run(looking.list_hosts([keys], state, name, most, looked, NOW_MS))
        assert found.is_whole or looked < 20
        return [row.host.removesuffix(".example") for row in found.rows]

    assert listed(most=3) == ["busy", "h0", "h1"]
    assert listed("busy") == ["busy"]
    assert listed("ready") == [f"h{number}" for number in range(6)]
    assert listed("waiting", most=2) == ["h6", "h7"]
    assert (listed("snoozed"), listed("retired")) == (["rests"], ["gone"])
    assert listed()[-2:] == ["rests", "gone"]
    assert len(listed()) == 23
    assert listed(name="h7.example") == ["h7"]
    assert len(listed(name="example")) == 23
    assert listed(name="xample") == []
    assert 0 < len(listed(most=8, looked=5)) < 8
    rows = runner.run(looking.list_hosts([keys], "retired", "", 5, 100, NOW_MS)).rows
    assert rows == [("gone.example", "retired", 10**15 + 5, 0, 0, 0, 0, "")]


def test_watching_writes_only_where_there_is_a_crawl(runner: ScriptRunner, crawl_name: str) -> None:
    """And reads whatever there is."""
    keys, client = CrawlKeys(crawl_name), runner.client
    client.hset(keys.recent, "a", "{}")
    client.hset(keys.delays, "a.example", "{}")
    assert runner.run(looking.watch_crawl(keys, NOW_MS, "a.example")).recent == [(b"a", b"{}")]
    assert not client.exists(keys.control)
    client.hset(keys.crawl, "id", "1")
    assert runner.run(looking.watch_crawl(keys, NOW_MS)) == ([(b"a", b"{}")], {}, {})
    assert runner.run(looking.watch_crawl(keys, NOW_MS, "a.example")).delays == {b"a.example": b"{}"}
    assert client.hgetall(keys.control) == {b"watched": b"1000000", b"watched_host": b"1000000 a.example"}


def test_failures_of_a_site_are_those_of_no_other(runner: ScriptRunner, crawl_name: str) -> None:
    keys, client = CrawlKeys(crawl_name), runner.client
    client.zadd(keys.errors, {"status:404\na.example": 3, "error:dns\na.example": 5, "error:dns\nb.a.example": 9})
    client.hset(keys.examples, "error:dns\na.example", "5\nhttp://a.example/")
    found = runner.run(looking.look_pld(keys, "a.example"))
    assert found.failed == [("error:dns\na.example", 5.0), ("status:404\na.example", 3.0)]
    assert found.examples == [b"5\nhttp://a.example/", b""]
