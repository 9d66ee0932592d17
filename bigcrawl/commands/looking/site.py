"""`scrapy frontier host HOST` and `pld PLD`: what the crawl knows of one host, and of one pay-level domain."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.looking.errors import read_errors
from bigcrawl.commands.looking.explain import addresses_of, time_text
from bigcrawl.commands.looking.hosts import Wanted, hosts_text, list_hosts
from bigcrawl.commands.looking.locate import read_host, read_partition_view
from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.commands.steering.blacklist import entries_of
from bigcrawl.commands.steering.budget import budget_text, read_budget
from bigcrawl.commands.steering.delay import rules_in_force, seconds_of
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.politeness.robots_policy import read_record
from bigcrawl.scheduler.records.body import look_at_body
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.scheduler.rules.blacklist import Blacklist
from bigcrawl.scheduler.rules.delay_rules import DelayBook

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.commands.opened_crawl import OpenedCrawl, Place
    from bigcrawl.config import Config

URLS: Final = 10  # of a host's queue that are shown
HOSTS: Final = 20  # of a PLD
ERRORS: Final = 10  # of a PLD


def host(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show a host, given by name or by any URL.

    Raises:
        UrlError: the word is neither.
        ConfigError: there is no such crawl.
        TransientStoreError: Redis does not answer.
    """
    with server_of(config) as server:
        data = asyncio.run(_host(config, server, words[0]))
    return Result(data, host_text(data))


def pld(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show a pay-level domain, given by its name or by any host or URL of it.

    Raises:
        CorruptionError: the partition's files are damaged; and as `host`.
    """
    with server_of(config) as server:
        data = asyncio.run(_pld(config, server, words[0]))
    return Result(data, pld_text(data))


def _place_of(crawl: OpenedCrawl, word: str) -> Place:
    return crawl.place_of(word if "://" in word else f"http://{word}/")


async def _host(config: Config, server: str, word: str) -> dict[str, Any]:
    async with opened(config, server) as crawl:
        place = _place_of(crawl, word)
        view, state = await read_partition_view(crawl, place.partition), await read_host(crawl, place)
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
            **seconds_of(config, delays),
            "addresses": list(addresses),
            "blacklisted": entry or next(filter(None, map(blacklist.of_address, addresses)), None),
            "robots": await _robots(crawl, place),
            "next_urls": await _next_urls(crawl, place),
        }


async def _robots(crawl: OpenedCrawl, place: Place) -> list[dict[str, Any]]:
    """Return the robots rules of the host's authorities that are in Redis."""
    fields = await crawl.client.command("HKEYS", crawl.keys(place.partition).host + place.host)
    names = [name.decode() for name in fields if name.startswith(b"robots:")]
    found = []
    for name in names:
        stored = await crawl.client.command("HGET", crawl.keys(place.partition).host + place.host, name)
        with suppress(BigcrawlError):  # a record that cannot be read; nodes fetch it again
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


async def _next_urls(crawl: OpenedCrawl, place: Place) -> list[str]:
    """Return the first URLs of the host's queue."""
    members = await crawl.client.command("ZRANGE", crawl.keys(place.partition).back + place.host, 0, URLS - 1)
    urls = []
    for member in members:
        with suppress(BigcrawlError, ValueError, TypeError):  # a URL that cannot be read; its node drops it
            urls.append(look_at_body(unpack_member(member).body)[0])
    return urls


async def _pld(config: Config, server: str, word: str) -> dict[str, Any]:
    async with opened(config, server) as crawl:
        place = _place_of(crawl, word)
        view = await read_partition_view(crawl, place.partition)
        budget = await read_budget(crawl, place.pld)
        listed = await list_hosts(crawl, Wanted(place.pld, "", "waiting", 0, HOSTS))
        errors = [row for row in await read_errors(crawl) if row["pld"] == place.pld]
        return {
            "pld": place.pld,
            "partition": place.partition,
            "owner": view.node if view.node and view.lease_left_ms > 0 else None,
            "budget": budget,
            **listed,
            "errors": errors[:ERRORS],
        }


def host_text(data: dict[str, Any]) -> str:
    """Return what is known of a host as text."""
    due = data["due_in_s"]
    when = "" if due is None else ", may be asked now" if not due else f", may be asked in {due:,.1f} s"
    taken = f", {data['taken']} taken" if data["taken"] else ""
    rows = {
        "of": f"{data['pld']}, in partition {data['partition']}, {_owner(data)}",
        "queue": f"{data['queued']:,} URLs in Redis{taken}{when}",
        "rests": f"{data['delay']:g} s, {data['pld_delay']:g} s between starts in its PLD",
        "addresses": ", ".join(data["addresses"]) or "not known",
    }
    if data["state"] != "well":
        last = f"{data['failures']:,} failures in a row, the last by {data['failed_by']}, {data['failed']}"
        rows["state"] = f"{data['state']}: {last}; `scrapy frontier awaken {data['host']}` ends its rest"
    if data["blacklisted"]:
        rows["blacklist"] = f"covers it, by the entry {data['blacklisted']}"
    for robots in data["robots"]:
        delay = "" if robots["crawl_delay"] is None else f", a crawl delay of {robots['crawl_delay']:g} s"
        rules = f"{robots['lines']:,} rules for us{delay}, valid until {robots['valid_until']}"
        rows[f"robots.txt of {robots['authority']}"] = rules
    is_met = data["queued"] or data["taken"] or data["failures"] or data["robots"] or data["addresses"]
    if not is_met:
        rows["known"] = "no: Redis has nothing of it; its URLs may wait on disk, see `scrapy frontier explain URL`"
    lines = [data["host"], *(f"  {name:<11}{text}" for name, text in rows.items())]
    return "\n".join([*lines, *(f"  {'next' if not n else '':<11}{url}" for n, url in enumerate(data["next_urls"]))])


def pld_text(data: dict[str, Any]) -> str:
    """Return what is known of a PLD as text."""
    lines = [budget_text(data["budget"]), f"  partition  {data['partition']}, {_owner(data)}"]
    lines += [f"  failed     {row['fetches']:,} {row['reason']}: {row['example']}" for row in data["errors"]]
    return "\n".join([*lines, hosts_text(data)])


def _owner(data: dict[str, Any]) -> str:
    return f"owned by {data['owner']}" if data["owner"] else "owned by no node"
