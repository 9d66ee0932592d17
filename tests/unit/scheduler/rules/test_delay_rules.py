"""Delays set by hand: how they are written, which one counts, and which spaces a URL keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.gates.delays import HostDelays
from bigcrawl.scheduler.gates.passages import PolitenessSpaces, group_function
from bigcrawl.scheduler.node.control import DELAYED
from bigcrawl.scheduler.rules.delay_rules import NO_DELAYS, DelayBook, DelayRule, delays_in_force, parse_delays
from bigcrawl.url.domain import PublicSuffixes
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import make_config, queued, world

if TYPE_CHECKING:
    from pathlib import Path

PLD = PublicSuffixes.from_text(b"com\ntest\n", private=False).pld


def book(**rules: dict[str, object]) -> DelayBook:
    return DelayBook(parse_delays({name.replace("_", "."): rule for name, rule in rules.items()}), PLD)


def test_the_most_specific_delay_counts() -> None:
    """Host, then PLD, then the longest name above; the PLD's own gap comes from its own rule alone."""
    made = DelayBook(
        parse_delays(
            {
                "www.example.com": {"delay": 0},
                "example.com": {"delay": 5, "pld_delay": 0.5},
                "*.blog.test": {"delay": 10},
                "*.old.blog.test": {"delay": 20.5},
            }
        ),
        PLD,
    )
    assert made.of_host("www.example.com") == DelayRule(0, 500)
    assert made.of_host("m.example.com") == DelayRule(5_000, 500)
    assert made.of_host("a.blog.test") == DelayRule(10_000, None)
    assert made.of_host("a.old.blog.test") == DelayRule(20_500, None)
    assert made.of_host("blog.test") == made.of_host("other.com") == NO_DELAYS
    assert made.has_pld_delays


def test_a_rule_leaves_to_others_what_it_does_not_say() -> None:
    """A host with a gap of its PLD alone rests as the PLD's rule says; a day is the longest delay."""
    made = book(www_example_com={"pld_delay": 1}, example_com={"delay": 86_400})
    assert made.of_host("www.example.com") == DelayRule(86_400_000, None)
    assert not book(a_com={"delay": 1}).has_pld_delays


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ({"example.com": {"dely": 1}}, "has an unknown 'dely'; must be delay or pld_delay"),
        ({"example.com": {"delay": -1}}, "delay is -1; must be a number from 0 to 86,400 s"),
        ({"example.com": {"delay": "1"}}, "delay is '1'; must be"),
        ({"example.com": {"delay": True}}, "delay is True; must be"),
        ({"example.com": {"delay": float("nan")}}, "delay is nan; must be"),
        ({"re:/x": {"delay": 1}}, "delays apply to hosts"),
        ({"http://example.com/": {"delay": 1}}, "must be a host"),
    ],
)
def test_what_is_no_rule_is_refused(rules: dict[str, Any], fault: str) -> None:
    """The message names setting, rule and fault."""
    with pytest.raises(ConfigError) as caught:
        parse_delays(rules)
    assert str(caught.value).startswith("BIGCRAWL_DELAY_RULES")
    assert fault in str(caught.value)


def test_what_was_said_while_the_crawl_ran_wins() -> None:
    """By name over the settings; an empty one takes a rule away; what cannot be read is told and left out."""
    settings = parse_delays({"a.com": {"delay": 1}, "b.com": {"delay": 2}})
    live = {b"a.com": b"{}", b"c.com": b'{"pld_delay": 3}', b"d.com": b"[]", b"\xff": b"{}", b"e.com": b"{"}
    rules, faults = delays_in_force(settings, live)
    assert rules == {"b.com": DelayRule(2_000), "c.com": DelayRule(None, 3_000)}
    assert len(faults) == 3
    assert DelayRule(2_000).to_json() == b'{"delay": 2.0}'


def spaces(tmp_path: Path, **settings: Any) -> PolitenessSpaces:
    config = make_config(tmp_path, "crawl", **settings)
    paces = HostDelays(config)
    paces.set_by_hand(book(slow_com={"pld_delay": 2}, free_com={"pld_delay": 0}))
    return PolitenessSpaces(config.pace, paces, PLD)


def group(host: str, url: str) -> str | None:
    return "even" if len(url) % 2 == 0 else None


def wrong_group(host: str, url: str) -> int:
    return 7


def test_a_url_keeps_the_space_of_its_pld_and_of_its_group(tmp_path: Path) -> None:
    """A rule of the PLD stands above the setting; None is no group."""
    made = spaces(tmp_path, pld_delay=0.5, group=f"{__name__}.group", group_delay=3)
    assert made.are_kept
    assert made.spaces_of("www.a.com", "http://1") == (("pld a.com", 500), ("group even", 3_000))
    assert made.spaces_of("www.slow.com", "http://12") == (("pld slow.com", 2_000),)
    assert made.spaces_of("free.com", "http://12") == ()


def test_by_default_no_space_is_kept(tmp_path: Path) -> None:
    """Nothing is asked then."""
    config = make_config(tmp_path, "crawl")
    assert not PolitenessSpaces(config.pace, HostDelays(config), PLD).are_kept


@pytest.mark.parametrize("path", ["nowhere.group", f"{__name__}.nothing", f"{__name__}.wrong_group", "group"])
def test_a_group_function_that_is_none_ends_the_start(path: str) -> None:
    """Tried at the start, so that a wrong one ends that and not each page."""
    with pytest.raises(ConfigError, match="BIGCRAWL_GROUP is"):
        group_function(path)


def test_a_host_rests_as_its_rule_says(tmp_path: Path) -> None:
    """In the place of the host delay, shorter or longer."""
    paces = HostDelays(make_config(tmp_path, "crawl", host_delay=1))
    assert paces.differ is False
    paces.set_by_hand(book(own_com={"delay": 0}, slow_com={"delay": 30}))
    assert [paces.host_delay_ms(host) for host in ("own.com", "a.slow.com", "other.com")] == [0, 30_000, 1_000]


@awaited
async def test_delays_said_while_the_crawl_runs_are_heard(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """At the next hearing the hosts that end a fetch rest as the rule says, also after their robots.txt."""
    async with world(tmp_path, crawl_name, redis_url, host_delay=1, robots="obey") as made:
        node = await made.joined()
        keys = CrawlKeys(crawl_name)
        rule = DelayRule(90_000).to_json()
        await made.client.commands([("HSET", keys.delays, "slow.example", rule), ("HINCRBY", keys.control, DELAYED, 1)])
        made.clock.advance(1_000)
        await node.steer.turn()
        for url in queued("http://slow.example/", "http://other.example/"):
            node.offer(url)
        await made.take(node)
        for host, rest_ms in (("slow.example", 90_000), ("other.example", 1_000)):
            record = made.keys(node, host).host + host
            now_s, next_ms = await made.client.commands([("TIME",), ("HGET", record, "next")])
            assert rest_ms - 1_500 < int(next_ms) - 1000 * int(now_s[0]) <= rest_ms + 1_000, host
