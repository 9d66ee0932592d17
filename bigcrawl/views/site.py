from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.clock import time_text
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.logs.plain import excerpt_of
from bigcrawl.politeness.robots_policy import read_record
from bigcrawl.redisdb.scripts import looking
from bigcrawl.scheduler.records.body import look_at_body
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.scheduler.rules.blacklist import Blacklist
from bigcrawl.scheduler.rules.delay_rules import DelayBook
from bigcrawl.views.activity.recent import timeline_of, watch
from bigcrawl.views.budget import budget_data, stored_rules, unit_data
from bigcrawl.views.errors import error_rows
from bigcrawl.views.explain import addresses_of
from bigcrawl.views.hosts import LISTED_MAX, HostQuery, first_hosts
from bigcrawl.views.locate import read_host
from bigcrawl.views.newest_files import read_view
from bigcrawl.views.orders import entries_with, rules_with, seconds_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.views.opened_crawl import OpenedCrawl

URLS: Final = 10
HOSTS: Final = 20
ERRORS: Final = 10
RULES: Final = 50
RULE_CHARACTERS: Final = 200


async def read_host_data(crawl: OpenedCrawl, word: str) -> dict[str, Any]:
    """Return all data about a host. Cost: three Redis commands."""
    place = crawl.place_of_site(word)
    state, watched = await read_host(crawl, place, URLS), await watch(crawl, place.host)
    seen = state.seen
    assert seen is not None
    delays = DelayBook(rules_with(crawl.config, watched.delays), crawl.suffixes.pld).of_host(place.host)
    blacklist = Blacklist(entries_with(crawl.config, watched.blacklist), crawl.suffixes.pld)
    addresses = await addresses_of(crawl, place.host)
    entry = blacklist.of_canonical(place.host, place.url)
    return {
        "host": place.host,
        "pld": place.pld,
        "partition": place.partition,
        "owner": seen.node or None,
        "state": state.state(seen.now_ms),
        "due_in_s": state.due_in_s(seen.now_ms),
        "queued": state.queued,
        "taken": state.busy,
        "failures": state.failures,
        "failed_by": state.why or None,
        "failed": time_text(state.failed_ms) if state.failed_ms else None,
        **seconds_of(crawl.config, delays),
        "addresses": list(addresses),
        "blacklisted": entry or next(filter(None, map(blacklist.of_address, addresses)), None),
        "robots": _robots_rows(seen.record),
        "next_urls": _urls_of(seen.next_members),
        "timeline": timeline_of(watched, place.host),
    }


def _robots_rows(record: Mapping[bytes, bytes]) -> list[dict[str, Any]]:
    found = []
    for name, stored in record.items():
        if not name.startswith(b"robots:"):
            continue
        with suppress(BigcrawlError):  # nodes fetch an unreadable record again
            rules, expiry_ms = read_record(stored)
            delay_ms = rules.crawl_delay_ms
            found.append(
                {
                    "authority": name.decode().removeprefix("robots:"),
                    "lines": len(rules.lines),
                    "rules": [excerpt_of(line, RULE_CHARACTERS) for line in rules.lines[:RULES]],
                    "crawl_delay": None if delay_ms is None else delay_ms / 1000,
                    "valid_until": time_text(expiry_ms),
                }
            )
    return found


def _urls_of(members: Sequence[bytes]) -> list[str]:
    urls = []
    for member in members:
        with suppress(BigcrawlError, ValueError, TypeError):  # its node drops an unreadable URL
            urls.append(look_at_body(unpack_member(member).body)[0])
    return urls


async def read_pld_data(crawl: OpenedCrawl, word: str) -> dict[str, Any]:
    """Return all data about a PLD, with its hosts in Redis that have the most URLs. Blocks, as it reads files."""
    place = crawl.place_of_site(word)
    view = await read_view(crawl, place.partition)
    [seen] = await crawl.client.run([looking.look_pld(crawl.crawl_keys, place.pld)])
    listed = await first_hosts(crawl, HostQuery(place.pld, "", "due", 0, LISTED_MAX))
    budget = budget_data(crawl, place.pld, stored_rules(crawl, seen.rules), view, seen.in_degrees)
    hosts = sorted(listed["hosts"], key=lambda row: (-row["queued"], row["host"]))
    return {
        "pld": place.pld,
        "partition": place.partition,
        "owner": view.node if view.node and view.lease_left_ms > 0 else None,
        "budget": {**budget, **await unit_data(crawl, place.pld)},
        "hosts": hosts[:HOSTS],
        "is_whole": listed["is_whole"] and len(hosts) < LISTED_MAX,
        "errors": error_rows(seen.failed, seen.examples)[:ERRORS],
    }
