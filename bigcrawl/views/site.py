"""Reads the state of one host or PLD."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.clock import time_text
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.politeness.robots_policy import read_record
from bigcrawl.scheduler.records.body import look_at_body
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.scheduler.rules.blacklist import Blacklist
from bigcrawl.scheduler.rules.delay_rules import DelayBook
from bigcrawl.views.budget import read_budget
from bigcrawl.views.errors import read_errors
from bigcrawl.views.explain import addresses_of
from bigcrawl.views.hosts import HostQuery, list_hosts
from bigcrawl.views.locate import read_host
from bigcrawl.views.newest_files import read_view
from bigcrawl.views.orders import entries_of, rules_in_force, seconds_of

if TYPE_CHECKING:
    from bigcrawl.views.opened_crawl import OpenedCrawl, UrlPlace

URLS: Final = 10
HOSTS: Final = 20
ERRORS: Final = 10


async def read_host_data(crawl: OpenedCrawl, word: str) -> dict[str, Any]:
    place = crawl.place_of_site(word)
    view, state = await read_view(crawl, place.partition), await read_host(crawl, place)
    delays = DelayBook(await rules_in_force(crawl), crawl.suffixes.pld).of_host(place.host)
    blacklist = Blacklist(await entries_of(crawl), crawl.suffixes.pld)
    addresses = await addresses_of(crawl, place.host)
    entry = blacklist.of_canonical(place.host, place.url)
    return {
        "host": place.host,
        "pld": place.pld,
        "partition": place.partition,
        "owner": view.node if view.node and view.lease_left_ms > 0 else None,
        "state": state.state(view.now_ms),
        "due_in_s": state.due_in_s(view.now_ms),
        "queued": state.queued,
        "taken": state.busy,
        "failures": state.failures,
        "failed_by": state.why or None,
        "failed": time_text(state.failed_ms) if state.failed_ms else None,
        **seconds_of(crawl.config, delays),
        "addresses": list(addresses),
        "blacklisted": entry or next(filter(None, map(blacklist.of_address, addresses)), None),
        "robots": await _robots_rows(crawl, place),
        "next_urls": await _next_urls(crawl, place),
    }


async def _robots_rows(crawl: OpenedCrawl, place: UrlPlace) -> list[dict[str, Any]]:
    fields = await crawl.client.command("HKEYS", crawl.keys(place.partition).host + place.host)
    names = [name.decode() for name in fields if name.startswith(b"robots:")]
    found = []
    for name in names:
        stored = await crawl.client.command("HGET", crawl.keys(place.partition).host + place.host, name)
        with suppress(BigcrawlError):  # nodes fetch an unreadable record again
            rules, expiry_ms = read_record(stored)
            delay_ms = rules.crawl_delay_ms
            found.append(
                {
                    "authority": name.removeprefix("robots:"),
                    "lines": len(rules.lines),
                    "crawl_delay": None if delay_ms is None else delay_ms / 1000,
                    "valid_until": time_text(expiry_ms),
                }
            )
    return found


async def _next_urls(crawl: OpenedCrawl, place: UrlPlace) -> list[str]:
    members = await crawl.client.command("ZRANGE", crawl.keys(place.partition).back + place.host, 0, URLS - 1)
    urls = []
    for member in members:
        with suppress(BigcrawlError, ValueError, TypeError):  # its node drops an unreadable URL
            urls.append(look_at_body(unpack_member(member).body)[0])
    return urls


async def read_pld_data(crawl: OpenedCrawl, word: str) -> dict[str, Any]:
    place = crawl.place_of_site(word)
    view = await read_view(crawl, place.partition)
    budget = await read_budget(crawl, place.pld)
    listed = await list_hosts(crawl, HostQuery(place.pld, "", "waiting", 0, HOSTS))
    errors = [row for row in await read_errors(crawl) if row["pld"] == place.pld]
    return {
        "pld": place.pld,
        "partition": place.partition,
        "owner": view.node if view.node and view.lease_left_ms > 0 else None,
        "budget": budget,
        **listed,
        "errors": errors[:ERRORS],
    }
