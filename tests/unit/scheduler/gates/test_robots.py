"""How rules are come by: once for all nodes, and in a taken URL's place."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.politeness.robots_policy import SITEMAPS_MAX, RobotsVerdict, verdict_on_response, write_record
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import PartitionKeys, partition_keys
from bigcrawl.redisdb.scripts import ANSWERS
from bigcrawl.scheduler.gates.interfaces import FetchedBody
from bigcrawl.scheduler.gates.robots import ALONE_MAX, STALE_MS
from bigcrawl.scheduler.rules.delay_rules import DelayBook, DelayRule
from tests.unit.scheduler.gates.parts import ELSEWHERE, FILE, HOST, RULES, gates_of, obeying, rules_of
from tests.unit.scheduler.gates.test_gatekeeper import url_of

if TYPE_CHECKING:
    from pathlib import Path


def test_rules_are_fetched_once_for_all_nodes(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """What one node fetched is in the host record: the next node uses it and asks nobody."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            w.web.answers[FILE] = FetchedBody(200, RULES)
            first, second = rules_of(w), rules_of(w)
            held = url_of(HOST)
            assert await first.stored_rules(held) is None
            await first.fetch_rules(held)
            known = await second.stored_rules(held)
            assert known is not None
            assert not known.rules.is_allowed(f"http://{HOST}/x")
            assert known.rules.is_allowed(f"http://{HOST}/y")
            assert w.web.asked == [FILE]

    asyncio.run(scenario())


def test_rules_that_redis_had_no_room_for_are_on_disk(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """They are found by the same node and by the next one, and the site is not asked again."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url, robots_bytes=1 << 20, partitions=4096) as w:
            first = rules_of(w)
            hosts = [f"h{number}.example" for number in range(20)]
            for host in hosts:
                w.web.answers[f"http://{host}/robots.txt"] = FetchedBody(
                    200, RULES + b"Disallow: /%b\n" % host.encode()
                )
                await first.fetch_rules(url_of(host))
            await first.close()
            asked = len(w.web.asked)
            host_key = partition_keys(w.config.crawl.name, url_of(HOST).partition).host
            fields = [("HGET", host_key + host, f"robots:http://{host}") for host in hosts]
            in_redis = await w.client.commands(fields)
            assert None in in_redis, "Redis keeps a few"
            second = rules_of(w)
            for host in hosts:
                known = await second.stored_rules(url_of(host))
                assert known is not None
                assert not known.rules.is_allowed(f"http://{host}/{host}")
            assert len(w.web.asked) == asked
            await second.close()

    asyncio.run(scenario())


def test_rules_on_disk_hold_no_longer_than_those_in_redis(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A copy of last week is none that a server's error may bring back."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            held = url_of(HOST)
            await w.client.commands([("PING",)])
            old_ms = w.client.now_ms() - STALE_MS
            for age_ms, is_last_copy in ((-1_000, False), (60_000, True)):
                robots = rules_of(w)
                await robots._shelf.put(held.partition, held.authority, write_record(decided().rules, old_ms + age_ms))
                assert await robots.stored_rules(held) is None
                assert (held.authority in robots._rules) is is_last_copy
                await robots.close()

    asyncio.run(scenario())


def test_a_longer_delay_is_shared_with_the_rules(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Whoever claims the partition before this fetch has ended knows how long the host rests after it.

    It is what robots.txt or the operator asks for. The usual delay needs no record.
    """

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url, host_delay=1) as w:
            for number, (answer, by_hand_ms, shared) in enumerate(
                [
                    (FetchedBody(200, RULES), None, None),
                    (FetchedBody(200, RULES + b"Crawl-delay: 3\n"), None, b"3000"),
                    (FetchedBody(200, RULES), 7_000, b"7000"),
                    (FetchedBody(200, RULES), 200, None),
                ]
            ):
                host = f"h{number}.example"
                w.web.answers[f"http://{host}/robots.txt"] = answer
                gates = gates_of(w)
                if by_hand_ms is not None:
                    gates.paces.set_by_hand(DelayBook({host: DelayRule(delay_ms=by_hand_ms)}, str))
                held = url_of(host)
                await gates.robots(w.web).fetch_rules(held)
                record = partition_keys(w.config.crawl.name, held.partition).host + host
                assert await w.client.command("HGET", record, "delay") == shared, answer

    asyncio.run(scenario())


def decided() -> RobotsVerdict:
    return verdict_on_response(200, RULES + b"Crawl-delay: 3\n", "bigcrawl", attempts=1, jitter=0.0)


def test_rules_expire_after_a_day(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Known rules are used for 24 hours and no longer."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            robots = rules_of(w)
            await robots.fetch_rules(url_of(HOST))
            w.clock.advance(24 * 3_600_000 - 1)
            assert robots.known_rules(f"http://{HOST}") is not None
            w.clock.advance(1)
            assert robots.known_rules(f"http://{HOST}") is None

    asyncio.run(scenario())


def test_unreachable_robots_fails_its_host_for_as_long_as_it_takes(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """No answer and 5xx: the host has failed, its URL waits and is never given up; then an answer ends that."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            robots = rules_of(w)
            for answer in (
                FetchedBody(503),
                FetchedBody(None),
                FetchedBody(429),
                FetchedBody(500),
                FetchedBody(None),
                FetchedBody(502),
            ):
                w.web.answers[FILE] = answer
                await robots.fetch_rules(url_of(HOST))
                assert robots.known_rules(f"http://{HOST}") is None, "nothing may be fetched, and nothing ends"
                assert robots.host_report(f"http://{HOST}") == "robots"
            w.web.answers[FILE] = FetchedBody(200, RULES)
            await robots.fetch_rules(url_of(HOST))
            known = robots.known_rules(f"http://{HOST}")
            assert known is not None
            assert known.rules.is_allowed(f"http://{HOST}/y")
            assert robots.host_report(f"http://{HOST}") == ANSWERS

    asyncio.run(scenario())


def test_retry_after_of_a_robots_file_is_its_hosts(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A 429 or 503 that asks for time gets it, up to the cap, and no other answer; a lent host rests as long."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url, retry_after_max=60) as w:
            robots = rules_of(w)
            for answer, asked_ms in (
                (FetchedBody(503, retry_after="7"), 7_000),
                (FetchedBody(429, retry_after="3600"), 60_000),
                (FetchedBody(500, retry_after="7"), 0),
                (FetchedBody(503), 0),
            ):
                w.web.answers[FILE] = answer
                held = url_of(HOST)
                await robots.fetch_rules(held)
                assert held.retry_after_ms == asked_ms
            target = f"http://{ELSEWHERE}/rules.txt"
            w.web.answers |= {FILE: FetchedBody(301, location=target), target: FetchedBody(503, retry_after="50")}
            await robots.fetch_rules(url_of(HOST))
            now_s, _ = await w.client.command("TIME")
            record = PartitionKeys(crawl_name, 0).host + ELSEWHERE
            assert int(await w.client.command("HGET", record, "next")) > (int(now_s) + 45) * 1_000

    asyncio.run(scenario())


def test_authority_that_alone_is_out_of_reach_is_closed_for_growing_times(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Its host answers between its tries: after a few the authority is closed, until the whole host fails."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            w.web.answers[FILE] = FetchedBody(None)
            failing: set[str] = set()
            robots = rules_of(w, host_fails=failing.__contains__)
            for _ in range(ALONE_MAX):
                await robots.fetch_rules(url_of(HOST))
                assert robots.known_rules(f"http://{HOST}") is None
            waits = []
            for _ in range(3):
                await robots.fetch_rules(url_of(HOST))
                known = robots.known_rules(f"http://{HOST}")
                assert known is not None
                assert known.reason == "unreachable"
                assert not known.rules.is_allowed(f"http://{HOST}/")
                waits.append(known.expires_ms - w.clock.monotonic_ms())
            assert waits[0] < waits[1] < waits[2]
            failing.add(HOST)
            await robots.fetch_rules(url_of(HOST))
            assert robots.known_rules(f"http://{HOST}") is None

    asyncio.run(scenario())


def test_last_good_copy_holds_while_the_server_errs(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A day later robots.txt is out of reach: what it said still holds, on every node, and is asked for again soon."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            robots = rules_of(w)
            w.web.answers[FILE] = FetchedBody(200, RULES)
            await robots.fetch_rules(url_of(HOST))
            waits = []
            for answer in (FetchedBody(503), FetchedBody(None), FetchedBody(429), FetchedBody(500)):
                w.web.answers[FILE] = answer
                w.clock.advance(24 * 3_600_000)
                assert robots.known_rules(f"http://{HOST}") is None
                await robots.fetch_rules(url_of(HOST))
                known = robots.known_rules(f"http://{HOST}")
                assert known is not None
                assert known.reason == "rules"
                assert not known.rules.is_allowed(f"http://{HOST}/x")
                assert known.rules.is_allowed(f"http://{HOST}/y")
                waits.append(known.expires_ms - w.clock.monotonic_ms())
                other = await rules_of(w).stored_rules(url_of(HOST))
                assert other is not None
                assert other.rules == known.rules
            assert waits == sorted(waits)
            assert waits[0] < 120_000
            w.web.answers[FILE] = FetchedBody(404)
            w.clock.advance(24 * 3_600_000)
            await robots.fetch_rules(url_of(HOST))
            known = robots.known_rules(f"http://{HOST}")
            assert known is not None
            assert known.rules.is_allowed(f"http://{HOST}/x")
            assert known.attempts == 0

    asyncio.run(scenario())


def test_copy_of_an_earlier_run_holds_while_the_server_errs(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A node that never saw the rules finds them in the host record, past their time, when the server errs."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url, robots_kept_min=0) as w:
            w.web.answers[FILE] = FetchedBody(200, RULES, cache_control="max-age=0")
            await rules_of(w).fetch_rules(url_of(HOST))
            w.web.answers[FILE] = FetchedBody(503)
            robots = rules_of(w)
            assert await robots.stored_rules(url_of(HOST)) is None
            await robots.fetch_rules(url_of(HOST))
            known = robots.known_rules(f"http://{HOST}")
            assert known is not None
            assert not known.rules.is_allowed(f"http://{HOST}/x")
            assert known.rules.is_allowed(f"http://{HOST}/y")

    asyncio.run(scenario())


def test_cache_control_shortens_the_day_down_to_the_least(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """max-age counts, less what a cache has kept it for; never more than a day, never less than the operator says."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url, robots_kept_min=60) as w:
            robots = rules_of(w)
            for cache_control, age, kept_s in (
                ("", "", 86_400),
                ("max-age=600", "", 600),
                ("public, Max-Age=600, must-revalidate", "200", 400),
                ('max-age="600"', "junk", 600),
                ("s-maxage=5", "", 86_400),
                ("max-age=999999999", "", 86_400),
                ("max-age=5", "", 60),
                ("max-age=-5", "", 86_400),
                ("no-cache", "", 60),
                ("private, no-store", "", 60),
                ("max-age=600", "9999999", 60),
            ):
                w.web.answers[FILE] = FetchedBody(200, RULES, cache_control=cache_control, age=age)
                await robots.fetch_rules(url_of(HOST))
                w.clock.advance(kept_s * 1_000 - 1)
                assert robots.known_rules(f"http://{HOST}") is not None, cache_control
                w.clock.advance(1)
                assert robots.known_rules(f"http://{HOST}") is None, cache_control

    asyncio.run(scenario())


def test_damaged_record_is_fetched_again(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Rules in Redis that cannot be read are as good as none."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            keys = PartitionKeys(crawl_name, 0)
            await w.client.run([scripts.put_robots(keys, HOST, f"robots:http://{HOST}", b"junk", 60_000, 100)])
            assert await rules_of(w).stored_rules(url_of(HOST)) is None

    asyncio.run(scenario())


def test_same_file_is_not_fetched_twice_at_a_time(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """With several connections a host, one URL fetches robots.txt and the others go back for the delay."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url, host_delay=3, host_connections=4) as w:
            robots = rules_of(w)
            w.web.gate = asyncio.Event()
            first = asyncio.ensure_future(robots.fetch_rules(url_of(HOST)))
            await w.web.was_asked.wait()
            assert await robots.fetch_rules(url_of(HOST, seq=2)) == 3_000
            w.web.gate.set()
            await first
            assert w.web.asked == [FILE]

    asyncio.run(scenario())


def test_ignored_rules_are_never_fetched(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """An operator who owns the hosts is asked for no robots.txt."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url, robots="ignore-i-own-these-hosts") as w:
            known = rules_of(w).known_rules(f"http://{HOST}")
            assert known is not None
            assert known.rules.is_allowed(f"http://{HOST}/x")

    asyncio.run(scenario())


def test_sitemaps_are_told_before_the_rules_are_kept(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Absolute and each once, with every fetch that names some; a crash in between leaves both to the next node."""
    named = (
        b"Sitemap: /a.xml\nUser-agent: *\nDisallow: /x\nSitemap: http://b.example/b.xml\nSitemap: a.xml\nSitemap: ::\n"
    )

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            robots = rules_of(w)
            told: list[tuple[str, list[str]]] = []
            record = PartitionKeys(crawl_name, 0).host + HOST

            async def tell(robots_url: str, urls: list[str]) -> None:
                assert await w.client.command("EXISTS", record) == 0
                assert robots.known_rules(f"http://{HOST}") is None
                told.append((robots_url, urls))

            robots.tell_sitemaps_to(tell)
            w.web.answers[FILE] = FetchedBody(200, named)
            await robots.fetch_rules(url_of(HOST))
            w.web.answers[f"http://{ELSEWHERE}/robots.txt"] = FetchedBody(200, RULES)
            await robots.fetch_rules(url_of(ELSEWHERE))
            assert await rules_of(w).stored_rules(url_of(HOST)) is not None
            assert len(told) == 1
            assert told[0][0] == FILE
            assert told[0][1][:2] == [f"http://{HOST}/a.xml", "http://b.example/b.xml"]
            assert len(set(told[0][1])) == len(told[0][1])

    asyncio.run(scenario())


def test_rules_of_one_authority_do_not_make_anothers_younger(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Rules in one host's record have an end each; so has a record that a long snooze keeps alive."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url, robots_kept_min=0) as w:
            w.web.answers[FILE] = FetchedBody(200, RULES, cache_control="max-age=0")
            await rules_of(w).fetch_rules(url_of(HOST))
            other = url_of(HOST)
            other.authority = f"http://{HOST}:8080"
            w.web.answers[f"{other.authority}/robots.txt"] = FetchedBody(200, RULES)
            await rules_of(w).fetch_rules(other)
            assert await rules_of(w).stored_rules(url_of(HOST)) is None
            assert await rules_of(w).stored_rules(other) is not None

    asyncio.run(scenario())


def test_what_a_robots_txt_names_is_bounded() -> None:
    """So many sitemaps, none longer than a URL may be."""
    lines = [f"Sitemap: http://a.example/{number}" for number in range(SITEMAPS_MAX + 50)]
    body = "\n".join(["Sitemap:", f"Sitemap: /{'x' * 3_000}", *lines]).encode()
    assert verdict_on_response(200, body, "bigcrawl").sitemaps == tuple(
        line.removeprefix("Sitemap: ") for line in lines[:SITEMAPS_MAX]
    )
