"""Robots rules of authorities: fetched before a host's first page, and kept for all nodes.

A robots.txt is fetched in place of a taken URL, which returns to its queue for the host's delay. So this fetch is as
polite as a page's, and no other node asks for the same file meanwhile.

    known, not expired   -> used
    in the host record   -> used: another node or an earlier run has fetched it
    in `robots_store`    -> used: the host record had no room for it, or has expired
    otherwise            -> fetched
        2xx, 4xx               kept for a day, or as long as Cache-Control says
        no answer, 5xx, 429    the last good copy stays in force, at most for `STALE_MS` beyond its time in the host
                               record; the file is asked for again with back-off
        the same, no copy      everything is forbidden, and the host has failed: it backs off, is snoozed and retired
                               like any other, and its URLs wait
        the same, host well    only this authority is out of reach (https where there is only http): after `ALONE_MAX`
                               more tries its URLs end as unreachable
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from bigcrawl.exceptions import CorruptionError
from bigcrawl.politeness.robots_policy import (
    RobotsRules,
    RobotsVerdict,
    agent_token,
    kept_ms,
    read_record,
    robots_url,
    verdict_on_response,
    write_record,
)
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.redisdb.scripts import ANSWERS
from bigcrawl.scheduler.gates.batcher import QuestionBatcher
from bigcrawl.scheduler.gates.interfaces import Closed, FetchedBody, asked_rest_ms
from bigcrawl.scheduler.gates.robots_store import IGNORED, KnownRules, RememberedRules, RulesOnDisk
from bigcrawl.scheduler.records.held import HeldUrl, Stage
from bigcrawl.url.canonical import host_of, join

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bigcrawl.clock import Clock
    from bigcrawl.config import Config
    from bigcrawl.histogram import Histogram
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.gates.delays import HostDelays
    from bigcrawl.scheduler.gates.robots_redirects import RobotsRedirects
    from bigcrawl.scheduler.gates.starts import FetchStarts, HostLoan

STALE_MS = 7 * 86_400_000
ALONE_MAX = 2


class RobotsGate:
    def __init__(
        self,
        config: Config,
        client: RedisClient,
        clock: Clock,
        starts: FetchStarts,
        redirects: RobotsRedirects,
        paces: HostDelays,
        host_fails: Callable[[str], bool],
    ) -> None:
        self._crawl = config.crawl.name
        self._policy = config.politeness
        self._records_max = max(8, config.frontier.host_records // config.crawl.partitions)
        self._bytes_max = config.frontier.robots_bytes // config.crawl.partitions
        self._client = client
        self._records: QuestionBatcher[tuple[str, ...], bytes | None] = QuestionBatcher(client.commands)
        self._calls: QuestionBatcher[scripts.Call[int], int] = QuestionBatcher(client.run_each)
        self._clock = clock
        self._starts = starts
        self._redirects = redirects
        self._paces = paces
        self._host_fails = host_fails
        self._agent = agent_token(config.politeness.agent)
        self._shelf = RulesOnDisk(config.crawl.crawl_dir)
        self._rules = RememberedRules(clock)
        self._under_way: set[str] = set()
        self._tell_sitemaps: Callable[[str, list[str]], Awaitable[None]] = _to_nobody
        self._tell_read: Callable[[HeldUrl, bytes], Awaitable[None]] = _to_nobody

    def __repr__(self) -> str:
        return f"<RobotsGate rules={len(self._rules)} under_way={len(self._under_way)} fetched={self.fetched}>"

    @property
    def fetched(self) -> int:
        return self._redirects.fetched

    @property
    def answered(self) -> int:
        return self._redirects.answered

    @property
    def fetch_times(self) -> Histogram:
        return self._redirects.times

    def tell_sitemaps_to(self, tell: Callable[[str, list[str]], Awaitable[None]]) -> None:
        """Set `tell` to be called with a robots.txt URL and the URLs of its sitemaps, before the rules are kept."""
        self._tell_sitemaps = tell

    def tell_read_to(self, tell: Callable[[HeldUrl, bytes], Awaitable[None]]) -> None:
        self._tell_read = tell

    def known_rules(self, authority: str) -> KnownRules | None:
        if not self._policy.obey_robots:
            return IGNORED
        return self._rules.unexpired_rules(authority)

    async def stored_rules(self, held: HeldUrl) -> KnownRules | None:
        """Return rules from the host record or from disk. Expired rules are remembered as the last good copy."""
        if held.authority in self._rules:
            return None  # the host record has nothing newer
        key = partition_keys(self._crawl, held.partition).host + held.host
        value = await self._records.ask(("HGET", key, _robots_field(held.authority)))
        try:
            rules, expires_ms = read_record(value or await self._shelf.get(held.partition, held.authority))
        except CorruptionError:
            return None
        left_ms = expires_ms - self._client.now_ms()
        if left_ms < -STALE_MS:
            return None  # it is from the disk: Redis would have dropped it by now
        known = self._rules.keep(held.authority, RobotsVerdict(rules, left_ms, "rules"))
        return known if left_ms > 0 else None

    async def fetch_rules(self, held: HeldUrl) -> int:
        """Fetch and keep the rules of the URL's authority. Return the rest of its host in ms. Raises Closed."""
        if held.authority in self._under_way:
            return self._policy.host_delay_ms
        self._under_way.add(held.authority)
        try:
            return await self._fetch_and_keep(held)
        finally:
            self._under_way.discard(held.authority)

    async def _fetch_and_keep(self, held: HeldUrl) -> int:
        url = robots_url(held.authority)
        gaps = await self._starts.wait_for_start(held.host, held.due_ms, url)
        if held.stage is Stage.ENDED:
            raise Closed(retry_ms=0)  # another node has its host by now
        fetched = await self._redirects.fetch(url, held.host, gaps, held.fields.body)
        if fetched.status is not None:
            await self._tell_read(held, fetched.body)
        earlier = self._rules.get(held.authority)
        attempts = (earlier.attempts if earlier else 0) + 1
        verdict = self._verdict_on(fetched, attempts)
        asked_ms = asked_rest_ms(fetched, self._clock.now_ms(), self._policy.retry_after_max_ms)
        held.record_answer(asked_ms, fetched.failure if verdict.reason == "unreachable" else "")
        if verdict.reason == "unreachable":
            if earlier is None or earlier.reason == "unreachable":
                return self._keep_unreachable(held, verdict, earlier, attempts)
            verdict = RobotsVerdict(earlier.rules, verdict.expires_in_ms, earlier.reason)
            self._rules.keep(held.authority, verdict, attempts)
        else:
            await self._tell_of_sitemaps(url, verdict)
            self._rules.keep(held.authority, verdict)
        await self._store_rules(held, verdict)
        return self._rest_ms(verdict.rules)

    async def learn_rules(self, authority: str, loan: HostLoan) -> KnownRules:
        """Fetch the rules of an authority on a borrowed host; without an answer, keep nothing."""
        url = robots_url(authority)
        fetched = await self._redirects.fetch(url, host_of(url), loan.gaps)
        verdict = self._verdict_on(fetched, 1)
        asked_ms = asked_rest_ms(fetched, self._clock.now_ms(), self._policy.retry_after_max_ms)
        loan.rest_at_least(max(asked_ms, self._rest_ms(verdict.rules)))
        if verdict.reason == "unreachable":
            return KnownRules(verdict.rules, 0, verdict.reason)
        return self._rules.keep(authority, verdict)

    def _verdict_on(self, fetched: FetchedBody, attempts: int) -> RobotsVerdict:
        return verdict_on_response(
            fetched.status,
            fetched.body,
            self._agent,
            attempts=attempts,
            jitter=random.random(),
            expires_in_ms=kept_ms(fetched.cache_control, fetched.age, least_ms=self._policy.robots_kept_min_ms),
        )

    async def _tell_of_sitemaps(self, robots: str, verdict: RobotsVerdict) -> None:
        """Report sitemaps before the rules are kept: if the node dies in between, the next node does both."""
        if verdict.sitemaps:
            urls = (join(robots, sitemap) for sitemap in verdict.sitemaps)
            await self._tell_sitemaps(robots, list(dict.fromkeys(url for url in urls if url is not None)))

    def _keep_unreachable(
        self, held: HeldUrl, verdict: RobotsVerdict, earlier: KnownRules | None, attempts: int
    ) -> int:
        """Let the host back off; if only this authority fails, close it alone for a while."""
        is_alone = earlier is not None and not self._host_fails(held.host)
        alone = earlier.alone + 1 if earlier is not None and is_alone else 0
        closed_ms = verdict.expires_in_ms if alone >= ALONE_MAX else 0
        self._rules.keep(held.authority, RobotsVerdict(verdict.rules, closed_ms, verdict.reason), attempts, alone)
        return self._policy.host_delay_ms

    def host_report(self, authority: str) -> str:
        known = self._rules.get(authority)
        return "" if known is None else "robots" if known.attempts else ANSWERS

    def rest_ms(self, authority: str) -> int:
        known = self._rules.get(authority)
        return self._rest_ms(known.rules) if known else self._policy.host_delay_ms

    def _rest_ms(self, rules: RobotsRules) -> int:
        asked_ms = min(rules.crawl_delay_ms or 0, self._policy.crawl_delay_max_ms)
        return max(self._policy.host_delay_ms, asked_ms)

    async def _store_rules(self, held: HeldUrl, verdict: RobotsVerdict) -> None:
        keys = partition_keys(self._crawl, held.partition)
        field, packed = _robots_field(held.authority), verdict.rules.to_bytes()
        usual_ms = self._policy.host_delay_ms
        rest_ms = max(self._rest_ms(verdict.rules), self._paces.host_delay_ms(held.host), held.retry_after_ms)
        call = scripts.put_robots(
            keys,
            held.host,
            field,
            packed,
            verdict.expires_in_ms,
            self._records_max,
            stale_ms=STALE_MS,
            bytes_max=self._bytes_max,
            delay_ms=rest_ms if rest_ms > usual_ms else 0,
        )
        await self._calls.ask(call)
        record = write_record(verdict.rules, self._client.now_ms() + verdict.expires_in_ms)
        await self._shelf.put(held.partition, held.authority, record)

    async def close(self) -> None:
        await self._shelf.close()


async def _to_nobody(*_: object) -> None: ...


def _robots_field(authority: str) -> str:
    return f"robots:{authority}"
