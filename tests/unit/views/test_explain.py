"""`scrapy frontier explain URL`: where a URL is at each step of its life, and what became of it."""

from __future__ import annotations

import argparse
import asyncio
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider

from bigcrawl.commands.looking.explain import explain, explanation_text
from bigcrawl.commands.repairing.requeue import forget
from bigcrawl.exceptions import ConfigError
from bigcrawl.politeness.dns_cache import DnsAnswer
from bigcrawl.redisdb.keys import CrawlKeys, partition_keys
from bigcrawl.scheduler.adapter.request_codec import encode_request
from bigcrawl.scheduler.gates.dns_answers import SharedDnsAnswers
from bigcrawl.url.canonical import UrlError
from bigcrawl.views import locate
from bigcrawl.views.explain import explain_url
from bigcrawl.views.opened_crawl import open_crawl
from tests.support.keys import KEYS, url_key
from tests.unit.scheduler.world import World, make_config, queued, viewed, world
from tests.unit.views.test_status import count_sent

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.views.opened_crawl import OpenedCrawl

URL, OTHER = "http://a.example/1", "http://a.example/2"


async def asked(w: World, url: str = URL) -> dict[str, Any]:
    """The explanation, after the fold has had its turn: it has no wish left to step."""
    return await viewed(w.config, explain_url, url)


def test_url_is_found_at_each_step_of_its_life(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Never discovered, in the inbox, in its host's queue behind another, taken."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            found = await asked(w)
            assert (found["where"], found["seen"], found["outcome"]) == ("nowhere", False, None)
            assert found["owner"] == node.node_id
            first, second = "http://a.example/0", URL
            for url in queued(first, second):
                node.offer(url)
            await node.pump.flush()
            assert (await asked(w))["where"] == "inbox"
            node.fold.record_inboxes()
            w.clock.advance(1_000)
            await node.ownership.folding.step_due(starved=True)
            found = await asked(w)
            assert (found["where"], found["seen"], found["ahead"], found["host_queued"]) == ("queued", True, 1, 2)
            assert found["failed_tries"] == 0
            await node.beat.leases.renew()
            await node.parts.exchange.run(acknowledge=False, urls_max=100)
            assert (await asked(w, first))["where"] == "taken"
            found = await asked(w)
            assert (found["where"], found["ahead"], found["host_busy"]) == ("queued", 0, 1)

    asyncio.run(scenario())


def test_page_of_a_url_sends_five_commands_at_most(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Wherever the URL is, the question for the time included."""

    async def sent_for(crawl: OpenedCrawl, where: str) -> None:
        crawl.client._crawl_clock._ask_ms = 0  # a second is over
        sent = count_sent(crawl.client)
        assert (await explain_url(crawl, URL))["where"] == where
        assert 0 < len(sent) <= 5, sent

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            async with open_crawl(w.config, redis_url) as crawl:
                await sent_for(crawl, "nowhere")
                for url in queued("http://a.example/0", URL):
                    node.offer(url)
                await node.pump.flush()
                await sent_for(crawl, "inbox")
                await w.turn(node, 1)
                await sent_for(crawl, "queued")

    asyncio.run(scenario())


def test_url_is_found_in_a_long_queue_and_a_long_inbox(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which take several commands; a search has an end, and the explanation says so."""
    monkeypatch.setattr(locate, "_URLS_AT_ONCE", 2)
    monkeypatch.setattr(locate, "_ENTRIES_AT_ONCE", 1)

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_hot_urls=10) as w:
            node = await w.joined()
            for url in queued(*(f"http://a.example/before{number}" for number in range(5)), URL):
                node.offer(url)
            await w.turn(node, 1)
            found = await asked(w)
            assert (found["where"], found["ahead"]) == ("queued", 5)
            for number in range(3):
                node.offer(*queued(f"http://a.example/after{number}"))
                await node.pump.flush()
            last = await asked(w, "http://a.example/after2")
            assert (last["where"], last["inbox_is_whole"]) == ("inbox", True)
            monkeypatch.setattr(locate, "INBOX_ENTRIES_MAX", 2)
            last = await asked(w, "http://a.example/after2")
            assert (last["where"], last["inbox_is_whole"]) == ("nowhere", False)

    asyncio.run(scenario())


def test_scope_and_filters_of_the_settings_are_told(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Which filter drops a URL, and what a scope says of one that was never discovered; otherwise nothing."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            await w.joined()
            await w.client.command("DEL", CrawlKeys(crawl_name).settings)  # those of a node would count
            text = explanation_text(await asked(w))
            assert "  scope " not in text
            assert "  filter " not in text
            listed = {"scope": "list", "scope_list": ("b.example",), "characters": "1"}
            for filters, said in ((listed, "out of BIGCRAWL_SCOPE_LIST"), ({"scope": "host"}, "host: only links from")):
                w.config = w.config.replace(filters=w.config.filters.replace(**filters))
                assert f"  scope     {said}" in explanation_text(await asked(w))
            assert "  filter    characters drops it" in explanation_text(await asked(w))

    asyncio.run(scenario())


def test_url_that_waits_behind_a_full_host_is_on_disk(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Seen, without an end, and nowhere in Redis."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_hot_urls=1) as w:
            node = await w.joined()
            for url in queued("http://a.example/0", URL):
                node.offer(url)
            await w.turn(node, 1)
            found = await asked(w)
            assert (found["where"], found["seen"]) == ("disk", True)
            assert "waiting on disk" in explanation_text(found)

    asyncio.run(scenario())


def test_explanation_names_key_place_and_spelling(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Any spelling of a URL is explained by its canonical form; the rest follows from that."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            found = await asked(w, "HTTP://WWW.B.example:80/x/../y?q#part")
            assert found["url"] == "http://www.b.example/y?q"
            assert found["key"] == f"{url_key('http://www.b.example/y?q'):016x}"
            assert (found["host"], found["pld"]) == ("www.b.example", "b.example")
            assert found["partition"] == node.crawl.partition_of_host("www.b.example")
            text = explanation_text(found)
            for part in (found["url"], found["key"], f"partition {found['partition']} of 4", node.node_id):
                assert part in text

    asyncio.run(scenario())


def test_without_its_files_what_redis_holds_is_told(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """From a machine that does not see the state directory, or after a disk is lost: what waits in Redis or the inbox.

    The rest is unknown as soon as a step may have made files, also one that admitted nothing.
    """

    async def scenario() -> None:
        async with world(tmp_path / "theirs", crawl_name, redis_url) as w:
            node = await w.joined()
            elsewhere = make_config(tmp_path / "ours", crawl_name, redis_url)

            async def looked(url: str) -> dict[str, Any]:
                return await viewed(elsewhere, explain_url, url)

            found = await looked(URL)
            assert (found["where"], found["seen"]) == ("nowhere", False), "no files can be lost before the first step"
            assert found["files"] == {"directory": None, "store": None}
            partition = node.crawl.partition_of_host("a.example")
            await asyncio.to_thread(forget, w.config, [URL], argparse.Namespace())
            assert (await looked(URL))["where"] == "nowhere", "nothing of its inbox was folded"
            await w.turn(node, 2)
            await node.ownership.table.run([(owned := node.ownership.owned[partition], owned.publish())])
            state = await w.client.command("HMGET", partition_keys(crawl_name, partition).state, "committed", "trimmed")
            assert state == [None, None]
            found = await looked(URL)
            assert (found["where"], found["seen"]) == ("unknown", None)
            assert "files are not here" in explanation_text(found)
            node.offer(queued(URL)[0])
            await w.turn(node, 1)
            assert (await looked(URL))["where"] == "queued"
            assert (await asked(w, OTHER))["where"] == "nowhere"
            assert (await looked(OTHER))["where"] == "unknown"
            shutil.rmtree(tmp_path / "theirs")
            assert (await asked(w, OTHER))["where"] == "unknown"

    asyncio.run(scenario())


def test_host_says_when_it_may_be_asked(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """After a fetch the host rests, and the explanation says for how long."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=500) as w:
            node = await w.joined()
            for url in queued(URL, "http://a.example/2"):
                node.offer(url)
            [held] = await w.take(node)
            assert (await asked(w, held.url))["host_due_in_s"] in (0, None)
            w.end(node, held)
            await node.parts.exchange.run(acknowledge=True, urls_max=0)
            found = await asked(w, "http://a.example/2")
            assert 450 < found["host_due_in_s"] <= 500
            assert "may be asked in" in explanation_text(found)

    asyncio.run(scenario())


def run(tmp_path: Path, crawl: str, redis_url: str | None, url: str) -> None:
    explain(make_config(tmp_path, crawl, redis_url), [url], argparse.Namespace())


def test_what_is_no_url_is_an_error(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A word that is no http URL is told, and so is a crawl that is not there."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            await w.joined()

    asyncio.run(scenario())
    with pytest.raises(UrlError, match="mailto"):
        run(tmp_path, crawl_name, redis_url, "mailto:a@b.example")
    with pytest.raises(ConfigError, match="no crawl 'another'"):
        run(tmp_path, "another", redis_url, URL)
    with pytest.raises(ConfigError, match="no crawl 'another'"):
        run(tmp_path, "another", None, URL)


def test_crawl_of_another_version_is_not_asked(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Keys made with another seed or canonical form would all be unknown: that is said instead."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            await w.joined()
            await w.client.command("HSET", CrawlKeys(crawl_name).crawl, "hash_seed", "1")
            with pytest.raises(ConfigError, match="another version"):
                await asked(w)

    asyncio.run(scenario())


def test_url_over_budget_says_how_far_its_pld_has_come(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Held by a rule, it waits on disk, and the explanation says why; in a later turn, in which one."""

    async def scenario() -> None:
        rules = {"a.example": {"budget": 1}, "b.example": {"budget": 0}}
        settings = {"budget_policy": "none", "budget_rules": rules, "host_hot_urls": 1}
        async with world(tmp_path, crawl_name, redis_url, partitions=1, **settings) as w:
            node = await w.joined()
            for url in queued("http://b.example/", *(f"http://a.example/{i}" for i in range(3))):
                node.offer(url)
            await w.turn(node, 1)
            held = await asked(w, "http://b.example/")
            assert (held["where"], held["pld_over_budget"]) == ("disk", True)
            assert "more URLs than its budget" in explanation_text(held)
            later = await asked(w, "http://a.example/2")
            assert (later["where"], later["pld_over_budget"]) == ("disk", False)
            assert later["pld_turn"] is not None
            assert "in turn 9, and this is turn 4" in explanation_text({**later, "pld_turn": 9, "turn": 4})
            while await w.take(node, 2):
                for taken in list(node.handout.held):
                    w.end(node, taken)
            text = explanation_text(held := await asked(w, "http://b.example/"))
            assert (held["where"], held["limits"]) == ("withheld", {"budget": {"value": 0, "rule": "b.example"}})
            assert "withheld on disk: the crawl does not wait for it" in text
            assert "waiting on disk" not in text
            assert "budget 0 (rule b.example)" in text

    asyncio.run(scenario())


def test_trap_is_explained(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The shape of the URL itself, and what the shapes of its PLD have done; nothing of it where traps are off."""
    trap = "http://a.example/calendar/2031/1"

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            await w.joined()
            assert "trap" not in explanation_text(await asked(w))
            assert "it looks like one's itself: calendar; its PLD is not taken" in explanation_text(
                await asked(w, trap)
            )
            found = await asked(w, trap)
            found["trap"] = {
                "is_caught": True,
                "urls": 256,
                "marked": 200,
                "kinds": {"calendar": 200},
                "same": 0,
                "is_wildcard": False,
                "budget_divided_by": 5,
            }
            said = explanation_text(found)
            assert "its PLD is taken for one and has its budget divided by 5: 200 of its last 256" in said
        async with world(tmp_path / "off", f"{crawl_name}-off", redis_url, traps=False) as w:
            await w.joined()
            assert "trap" not in explanation_text(await asked(w, trap))

    asyncio.run(scenario())


def test_blacklisted_address_is_named(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """An entry of addresses covers a host by what nodes have heard of DNS, or by its literal; the address is told."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, blacklist=("203.0.113.0/24", "b.example")) as w:
            await w.joined()
            assert (await asked(w))["blacklisted"] is None
            answers = SharedDnsAnswers(w.client, CrawlKeys(crawl_name), w.config.dns.shared_answers)
            answers.put("a.example", DnsAnswer(("198.51.100.1", "203.0.113.9"), 60_000))
            await answers.get("a.example")  # one round trip tells and asks
            found = await asked(w)
            assert (found["blacklisted"], found["blacklisted_address"]) == ("203.0.113.0/24", "203.0.113.9")
            assert "by the entry 203.0.113.0/24, which has its address 203.0.113.9" in explanation_text(found)
            assert (await asked(w, "http://203.0.113.7/"))["blacklisted_address"] == "203.0.113.7"
            by_name = await asked(w, "http://b.example/")
            assert (by_name["blacklisted"], by_name["blacklisted_address"]) == ("b.example", None)

    asyncio.run(scenario())


def test_depth_and_referrer_of_a_url_that_waits_are_told(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """In the inbox as in Redis: how many links lead to it, and from which page, where its request names one."""
    spider = Spider("a")
    request = Request(URL, meta={"depth": 3}, headers={"Referer": "http://b.example/from"})

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            node.offer(encode_request(request, spider, key_of=KEYS.of_request, checked=True, url_bytes_max=8_192)[0])
            await node.pump.flush()
            for where in "inbox", "queued":
                found = await asked(w)
                assert (found["where"], found["depth"], found["referrer"]) == (where, 3, "http://b.example/from")
                assert "3 links from a start URL" in explanation_text(found)
                assert "http://b.example/from" in explanation_text(found)
                node.fold.record_inboxes()
                w.clock.advance(1_000)
                await node.ownership.folding.step_due(starved=True)

    asyncio.run(scenario())
