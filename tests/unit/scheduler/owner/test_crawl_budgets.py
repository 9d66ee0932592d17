"""Budgets of a whole crawl: what all owners count, and what the operator sets, reaches every node."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.middlewares.links import LinksMiddleware
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.budgets.in_degrees import InDegreeCounts
from bigcrawl.scheduler.node.control import BUDGETED, READ_MS
from bigcrawl.scheduler.owner.crawl_budgets import REFRESH_MS, CrawlBudgets
from bigcrawl.scheduler.scheduler import Scheduler
from tests.support.keys import partition_of, pld_key
from tests.unit.scheduler.world import QUIET, make_config, queued, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bigcrawl.scheduler.node.node import Node
    from bigcrawl.scheduler.records.held import HeldUrl
    from tests.unit.scheduler.world import World


class _Keys:
    def __init__(self, partition: int) -> None:
        self.partition = partition


class Counting:
    """An owned partition as far as its counts go."""

    def __init__(self, partition: int, *in_degrees: int) -> None:
        self.keys = _Keys(partition)
        self.disk = self.state = self
        self.in_degrees = InDegreeCounts.of(np.array(in_degrees, dtype=np.uint32))


def reputation(w: World, **settings: Any) -> CrawlBudgets:
    config = make_config(w.config.crawl.state_dir, w.config.crawl.name, w.config.crawl.redis_url, **settings)
    made = CrawlBudgets(config, w.client, str, pld_key)
    made.begin()
    return made


def budget(found: CrawlBudgets, in_degree: int, pld: str = "a.example") -> int:
    assert found.budgets is not None
    plds = np.array([pld_key(pld)], dtype=np.uint64)
    return int(found.budgets.budgets(plds, np.array([in_degree], dtype=np.uint32))[0])


def test_ranks_are_of_all_partitions(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """What one node's partitions count raises budgets on another node, once, and again only when it changes."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            one, other = reputation(w), reputation(w)
            stars = Counting(0, *[40] * 500)
            crowd = Counting(1, *[1] * 200_000)
            assert await one.refresh([stars])  # type: ignore[list-item]
            assert budget(one, 40) == 10  # five hundred of five hundred
            assert await other.refresh([crowd])  # type: ignore[list-item]
            assert budget(other, 40) == 400  # the best of many
            assert budget(other, 1) == 10
            assert not await other.refresh([crowd])  # type: ignore[list-item]
            assert await one.refresh([stars])  # type: ignore[list-item]
            assert budget(one, 40) == 400

    asyncio.run(scenario())


def test_rule_set_while_running_is_in_force_at_the_next_look(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Over the settings' rule of that name; one that cannot be read is left out and said."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            found = reputation(w, budget_rules={"a.example": {"budget": 3}, "b.example": {"budget": 4}})
            assert (budget(found, 0), budget(found, 0, "b.example")) == (3, 4)
            rules = CrawlKeys(crawl_name).rules
            await w.client.command("HSET", rules, "a.example", json.dumps({"budget": 700}), "c.example", "nonsense")
            assert await found.refresh([])
            assert (budget(found, 0), budget(found, 0, "b.example"), budget(found, 0, "c.example")) == (700, 4, 10)
            await w.client.command("DEL", rules)
            assert await found.refresh([])
            assert budget(found, 0) == 3

    asyncio.run(scenario())


def test_counts_that_cannot_be_read_stop_nobody(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A newer node's, for instance: they are left out."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            found = reputation(w)
            await w.client.command("HSET", CrawlKeys(crawl_name).in_degrees, 7, b"\xffwhatever")
            assert await found.refresh([Counting(0, 1, 2, 3)])  # type: ignore[list-item]
            assert budget(found, 3) == 10

    asyncio.run(scenario())


def test_without_a_policy_nothing_is_published(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """And there are no budgets, until a rule is set."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            found = reputation(w, budget_policy="none")
            assert not await found.refresh([Counting(0, 1)])  # type: ignore[list-item]
            assert found.budgets is None
            assert not await w.client.command("EXISTS", CrawlKeys(crawl_name).in_degrees)
            await w.client.command("HSET", CrawlKeys(crawl_name).rules, "a.example", json.dumps({"budget": 5}))
            assert await found.refresh([])
            assert budget(found, 0) == 5

    asyncio.run(scenario())


@pytest.mark.parametrize("settings", [{"budget_policy": "stra"}, {"budget_rules": {"a.example": {"budgets": 1}}}])
def test_wrong_settings_are_refused_at_the_start(tmp_path: Path, settings: dict[str, Any]) -> None:
    """With what was meant."""
    with pytest.raises(ConfigError, match="did you mean"):
        CrawlBudgets(make_config(tmp_path, "crawl", **settings), None, str, pld_key)  # type: ignore[arg-type]


# --- in a node


async def take_all(w: World, node: Node, turns: int = 12) -> list[str]:
    """Fetch what comes, each at once; the URLs."""
    fetched: list[HeldUrl] = []
    for _ in range(turns):
        for held in await w.take(node, 1):
            w.end(node, held)
            fetched.append(held)
    return [held.url for held in fetched]


async def offered(w: World, node: Node, *urls: str) -> None:
    for url in queued(*urls):
        node.offer(url)
    await w.turn(node)


def test_held_urls_end_no_crawl_and_keep_none_from_ending(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A PLD with a budget of 0 waits on disk; the rest is crawled, and the crawl is finished, saying what is held.

    A rule that lets them go starts it again where it was.
    """

    async def scenario() -> None:
        rules = {"a.example": {"budget": 0}}
        async with world(tmp_path, crawl_name, redis_url, budget_rules=rules) as w:
            node = await w.joined()
            held = [f"http://www.a.example/{i}" for i in range(5)]
            await offered(w, node, *held, "http://b.example/")
            assert await take_all(w, node) == ["http://b.example/"]
            seen = await node.progress.survey()
            assert (seen.waiting, seen.counts["withheld"]) == (0, 5)
            assert node.progress.is_finished
            await w.client.command("HSET", CrawlKeys(crawl_name).rules, "a.example", json.dumps({"budget": 2}))
            w.clock.advance(REFRESH_MS)
            assert sorted(await take_all(w, node, 30)) == held
            seen = await node.progress.survey()
            assert (seen.waiting, seen.counts["withheld"]) == (0, 0)

    asyncio.run(scenario())


def test_links_of_other_domains_raise_a_budget(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """From the page to the owner: edges travel with URLs, and are counted once for each pair."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, budget_policy="proportional", budget=2) as w:
            node = await w.joined()
            assert node.link_graph is not None
            for i in range(7):
                node.link_graph.note(f"http://site{i}.example{i}/", ["http://www.a.example/", "http://www.a.example/x"])
            node.link_graph.note("http://again.example3/", ["http://b.a.example/"])
            await offered(w, node, "http://www.a.example/")
            mine = node.ownership.owned[partition_of(node.crawl.pld_of("a.example"), 4)]
            plds = np.array([pld_key(node.crawl.pld_of("a.example"))], dtype=np.uint64)
            degree = int(mine.disk.in_degrees(plds)[0])
            sources = [f"site{i}.example{i}" for i in range(7)]
            assert degree == len({node.crawl.pld_of(host) for host in (*sources, "again.example3")})
            assert node.parts.ownership.crawl_budgets.budgets_of(mine.disk, ["www.a.example"]) == [2 * degree]

    asyncio.run(scenario())


def test_a_host_of_a_shared_domain_has_the_budget_of_its_own_links(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    async def scenario() -> None:
        settings = {"budget_policy": "proportional", "budget": 2, "budget_units": ["*.a.example"]}
        async with world(tmp_path, crawl_name, redis_url, **settings, budget_unit_links=3) as w:
            node = await w.joined()
            assert node.link_graph is not None
            for number in range(4):
                node.link_graph.note(f"http://www.site{number}.org/", ["http://ann.a.example/"])
            node.link_graph.note("http://www.site9.org/", ["http://bob.a.example/"])
            await offered(w, node, "http://ann.a.example/")
            pld = node.crawl.pld_of("ann.a.example")
            mine = node.ownership.owned[partition_of(pld, 4)]
            budgets = node.parts.ownership.crawl_budgets.budgets_of(mine.disk, ["ann.a.example", "bob.a.example", pld])
            assert budgets == [2 * 4, 2 * 5, 2 * 5]

    asyncio.run(scenario())


def test_requests_of_callbacks_are_links_of_their_page(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """An ordinary spider has in-degrees too; start requests and redirects, which no page links to, raise none."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, budget_policy="proportional", budget=2) as w:
            crawler = get_crawler(Spider, {**QUIET, "BIGCRAWL_STATE_DIR": str(tmp_path)})
            crawler.spider = Spider(name="test")
            frontier = Scheduler.from_crawler(crawler)
            node = await w.joined()
            frontier.attach(node, crawler.spider)
            middleware = LinksMiddleware.from_crawler(crawler)
            for i, target in enumerate(("http://WWW.A.example:80/", "http://b.a.example/", "http://www.a.example/")):
                made = Request(target, method="POST" if i == 1 else "GET", dont_filter=i == 2)
                pages = {f"http://site{i}.example{i}/": [made], "http://x.a.example/": [Request(target)]}
                for page, requests in pages.items():
                    async for request in middleware.process_spider_output(Response(page), _given(requests)):
                        frontier.enqueue_request(request)
            start, redirect = Request("http://www.a.example/start"), Request("http://www.a.example/moved")
            frontier.intake.record_start_request(start)
            redirect.meta.update(redirect_times=1, redirect_urls=["http://site9.example9/"])
            assert all(frontier.enqueue_request(request) for request in (start, redirect))
            await offered(w, node)
            mine = node.ownership.owned[partition_of(node.crawl.pld_of("a.example"), 4)]
            degree = int(mine.disk.in_degrees(np.array([pld_key(node.crawl.pld_of("a.example"))], dtype=np.uint64))[0])
            assert degree == 3

    asyncio.run(scenario())


async def _given(outputs: list[Request]) -> AsyncIterator[Request]:
    for output in outputs:
        yield output


def test_bytes_of_a_site_are_limited(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Bodies count for the account of the rule; what is found when they are used up is held, not lost."""

    async def scenario() -> None:
        rules = {"a.example": {"bytes": 100_000, "budget": 2}}
        async with world(tmp_path, crawl_name, redis_url, budget_rules=rules) as w:
            node = await w.joined()
            await offered(w, node, "http://www.a.example/")
            [held] = await w.take(node)
            held.fetched_bytes = 100_000
            w.end(node, held)
            await w.turn(node, 8)
            await offered(w, node, "http://www.a.example/late", "http://b.example/")
            assert await take_all(w, node) == ["http://b.example/"]
            assert (await node.progress.survey()).counts["withheld"] == 1

    asyncio.run(scenario())


def test_without_a_policy_links_are_not_counted(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Nobody asks for in-degrees then: no page is looked at for them, and no message is longer for it."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, budget_policy="none") as w:
            assert (await w.joined()).link_graph is None

    asyncio.run(scenario())


def test_redis_that_forgot_is_told_the_counts_again(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Counts that do not change any more would else be missing for good."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            found, counting = reputation(w), Counting(3, 1, 2)
            await found.refresh([counting])  # type: ignore[list-item]
            await w.client.command("DEL", CrawlKeys(crawl_name).in_degrees)
            await found.refresh([counting])  # type: ignore[list-item]
            assert not await w.client.command("EXISTS", CrawlKeys(crawl_name).in_degrees)
            found.publish_again()
            await found.refresh([counting])  # type: ignore[list-item]
            published = await w.client.command("HGET", CrawlKeys(crawl_name).in_degrees, 3)
            assert published == counting.in_degrees.to_bytes()

    asyncio.run(scenario())


def test_new_counts_stir_only_partitions_that_withhold_urls(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Ranks change every half minute: hundreds of partitions must not read empty inboxes for it."""

    async def scenario() -> None:
        rules = {"a.example": {"budget": 0}}
        async with world(tmp_path, crawl_name, redis_url, budget_rules=rules) as w:
            node = await w.joined()
            await offered(w, node, "http://www.a.example/", "http://b.example/")
            await take_all(w, node)
            withholding = partition_of(node.crawl.pld_of("a.example"), 4)
            for mine in node.ownership.owned.values():
                mine.inbox.has_urls = False
            await w.client.command("HSET", CrawlKeys(crawl_name).rules, "c.example", json.dumps({"budget": 5}))
            await node.ownership.budgets.refresh()
            assert [p for p, mine in node.ownership.owned.items() if mine.inbox.has_urls] == [withholding]

    asyncio.run(scenario())


def test_rule_set_by_hand_is_in_force_within_a_second(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The order is heard at the next reading, and ends the rest of the loop that looks at budgets."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            await w.turn(node, 2)
            keys, found = CrawlKeys(crawl_name), node.parts.ownership.crawl_budgets
            told = [found.is_told]
            rule = json.dumps({"budget": 0})
            await w.client.commands([("HSET", keys.rules, "a.example", rule), ("HINCRBY", keys.control, BUDGETED, 1)])
            w.clock.advance(READ_MS)
            await node.steer.turn()
            told.append(found.is_told)
            await asyncio.wait_for(node.watch.rest(3_600), 60)
            await node.watch.refresh_budgets()
            assert [*told, found.is_told] == [False, True, False]
            await offered(w, node, "http://a.example/", "http://b.example/")
            assert await take_all(w, node) == ["http://b.example/"]

    asyncio.run(scenario())


def test_budgets_that_cannot_be_read_after_a_step_lose_no_batch(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are asked for scaled delays when the batch is admitted already; the crawl goes on without them."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, host_delay=1, host_delay_min=0.1) as w:
            node = await w.joined()
            for url in queued("http://a.example/", "http://b.example/"):
                node.offer(url)
            await node.pump.flush()
            node.fold.record_inboxes()
            w.clock.advance(1_000)

            def fails(*_: object) -> list[int]:
                raise TransientStoreError("away")

            with monkeypatch.context() as patched:
                patched.setattr(node.parts.ownership.crawl_budgets, "budgets_of", fails)
                with pytest.raises(TransientStoreError):
                    await node.ownership.folding.step_due(starved=True)
            assert not any(mine.admissions.are_pending for mine in node.ownership.owned.values())
            await node.beat.leases.renew()
            assert sorted(await take_all(w, node)) == ["http://a.example/", "http://b.example/"]

    asyncio.run(scenario())


class Taking:
    """A partition as far as it is given what is in force."""

    def __init__(self) -> None:
        self.sources = self
        self.given: dict[str, Any] = {}

    def set_budgets(self, budgets: Any) -> None:
        self.given["budgets"] = budgets

    def set_units(self, units: Any) -> None:
        self.given["units"] = units

    def set_callbacks(self, callbacks: Any) -> None:
        self.given["callbacks"] = callbacks

    def set_withholds(self, withholds: Any) -> None:
        self.given["withholds"] = withholds

    def set_mark(self, mark: int) -> None:
        self.given["mark"] = mark

    def set_prioritizing(self, prioritizing: Any) -> None:
        self.given["prioritizing"] = prioritizing


def test_a_prioritizer_has_the_ranks_of_all_partitions(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Without budgets too, and those that other nodes count; with depth, for which no link counts, nothing is told."""

    def priority(budgets: CrawlBudgets, in_degree: int) -> int:
        taking = Taking()
        budgets.give_to(taking)  # type: ignore[arg-type]
        assert taking.given["budgets"] is None
        [url] = taking.given["prioritizing"].prioritize(queued("http://a.example/"), np.array([in_degree]), None)
        assert isinstance(url.priority, int)
        return url.priority

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            settings = {"budget_policy": "none", "prioritizer": "rank"}
            one, other = reputation(w, **settings), reputation(w, **settings)
            assert priority(one, 3) == 0
            assert await one.refresh([Counting(0, 3)])  # type: ignore[list-item]
            assert priority(one, 3) == 1000
            assert await other.refresh([Counting(1, *[9] * 99)])  # type: ignore[list-item]
            assert await one.refresh([])
            assert (priority(one, 3), priority(one, 9)) == (priority(other, 3), priority(other, 9)) == (1, 1)
            deep = reputation(w, budget_policy="none", prioritizer="depth")
            assert deep._changed_counts([Counting(0, 3)]) == {}  # type: ignore[list-item]

    asyncio.run(scenario())


def test_queued_urls_are_scored_again_when_the_links_have_doubled(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Neither more often, nor for a prioritizer that asks for no links."""

    async def generations(budgets: CrawlBudgets, *links: int) -> list[int]:
        found = []
        for count in links:
            await budgets.refresh([Counting(0, count)])  # type: ignore[list-item]
            taking = Taking()
            budgets.give_to(taking)  # type: ignore[arg-type]
            found.append(taking.given["prioritizing"].generation)
        return found

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            assert await generations(reputation(w, prioritizer="quality"), 1, 2, 3, 4, 7, 8, 60) == [
                1,
                2,
                2,
                3,
                3,
                4,
                5,
            ]
            assert await generations(reputation(w, prioritizer="depth"), 1, 2, 60) == [1, 1, 1]

    asyncio.run(scenario())


def test_a_prioritizer_that_is_unknown_ends_the_start(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """With what is known."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            with pytest.raises(ConfigError, match="BIGCRAWL_PRIORITIZER is 'ranks'; did you mean rank"):
                reputation(w, prioritizer="ranks")

    asyncio.run(scenario())
