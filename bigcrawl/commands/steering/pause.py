"""Stops nodes, sites, links or the whole crawl. A paused host or PLD is on the blacklist until it is resumed.

Entries of the blacklist are hosts, PLDs, `*.` and a name, `re:` and a pattern, and addresses.

Source of `discovery`: PolyBot §3.2 and §4.1, whose crawls ended in this way.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.node.control import BLACKLISTED, DISCOVERY, DRAINED, PAUSED, Discovery
from bigcrawl.scheduler.rules.blacklist import OFF, ON, parse_entries
from bigcrawl.views.opened_crawl import ids_of, in_crawl
from bigcrawl.views.orders import discovery_data, entries_of, read_discovery

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl

_WHERE = "scrapy frontier blacklist"
_VERBS = ("add", "remove", "list")


def blacklist(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Add to the blacklist or remove from it, and list it; the exit status is 1 if an entry to remove is unknown."""
    verb, *written = words
    if verb not in _VERBS or (verb == "list") == bool(written):
        what = "WHAT is a host, a PLD, *. and a name, re: and a pattern, or addresses"
        raise ConfigError(f"{_WHERE} takes add WHAT..., remove WHAT..., or list; {what}")
    entries = parse_entries(written, _WHERE)
    data = in_crawl(config, _change_blacklist, verb, entries)
    return Result(data, blacklist_text(data), 1 if data["unknown"] else 0)


async def _change_blacklist(crawl: OpenedCrawl, verb: str, entries: frozenset[str]) -> dict[str, Any]:
    of_settings = parse_entries(crawl.config.pace.blacklist)
    before = await entries_of(crawl)
    unknown = entries - before if verb == "remove" else frozenset()
    if entries:
        await change_blacklist(crawl, entries, add=verb == "add")
    now = await entries_of(crawl)
    return {
        "added": sorted(now - before),
        "removed": sorted(before - now),
        "unknown": sorted(unknown),
        "entries": {entry: "settings" if entry in of_settings else "by hand" for entry in sorted(now)},
    }


async def change_blacklist(crawl: OpenedCrawl, entries: frozenset[str], *, add: bool) -> frozenset[str]:
    before = await entries_of(crawl)
    changed = entries - before if add else entries & before
    if changed:
        await _write_entries(crawl, changed, parse_entries(crawl.config.pace.blacklist), add=add)
    return changed


async def _write_entries(
    crawl: OpenedCrawl, entries: frozenset[str], of_settings: frozenset[str], *, add: bool
) -> None:
    """Change entries, then notify the nodes. A finished crawl may have URLs to fetch again."""
    keys = crawl.crawl_keys
    rows: list[tuple[str | bytes, ...]] = []
    for entry in sorted(entries):
        if add == (entry in of_settings):
            rows.append(("HDEL", keys.blacklist, entry))
        else:
            rows.append(("HSET", keys.blacklist, entry, ON if add else OFF))
    await crawl.client.commands([*rows, ("HINCRBY", keys.control, BLACKLISTED, "1")])
    if not add:
        await crawl.unmark_finished()
    if entries:
        word = "added to" if add else "removed from"
        await crawl.record_event("rule", f"{word} the blacklist: {', '.join(sorted(entries))}")


def blacklist_text(data: dict[str, Any]) -> str:
    lines = [f"added: {entry}" for entry in data["added"]]
    lines += [f"removed: {entry}" for entry in data["removed"]]
    lines += [f"not on the blacklist: {entry}" for entry in data["unknown"]]
    lines += [f"  {entry:<40}{origin}" for entry, origin in data["entries"].items()]
    return "\n".join(lines) or "the blacklist is empty"


def pause(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Pause the crawl, or the named nodes, hosts and PLDs, on every node within a second."""
    return _change_pauses(config, words, on=True)


def resume(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Resume the crawl, or the named nodes, hosts and PLDs."""
    return _change_pauses(config, words, on=False)


def _change_pauses(config: Config, words: Sequence[str], *, on: bool) -> Result:
    changed, unchanged = in_crawl(config, _carry_out, words, on=on)
    did, had = ("paused", "was paused before") if on else ("goes on", "was not paused")
    lines = [f"{did}: {each}{_misspelling_hint(each)}" for each in changed] + [
        f"{had}: {each}{_misspelling_hint(each)}" for each in unchanged
    ]
    data: dict[str, Any] = {"changed": changed, "unchanged": unchanged}
    return Result(data, "\n".join(lines), 1 if unchanged and not on else 0)


def _misspelling_hint(name: str) -> str:
    """Return a hint that a name without a dot, perhaps a misspelled node name, was read as a host."""
    return "" if set(name) & set(" .:") else ", as a host; no node of this name runs"


async def _carry_out(crawl: OpenedCrawl, words: Sequence[str], *, on: bool) -> tuple[list[str], list[str]]:
    nodes = await _known_nodes(crawl)
    meant = {word: ids_of(word, nodes) for word in words}
    verb = "pause" if on else "resume"
    sites = parse_entries([word for word in words if not meant[word]], f"scrapy frontier {verb}")
    fields = {f"node {node}": f"{PAUSED}:{node}" for word in words for node in meant[word]}
    if not words:
        fields = {f"crawl {crawl.config.crawl.name}": PAUSED}
    changed: list[str] = []
    unchanged: list[str] = []
    for name, field in fields.items():
        key = crawl.crawl_keys.control
        order = ("HSET", key, field, "1") if on else ("HDEL", key, field)
        (changed if await crawl.client.command(*order) else unchanged).append(name)
    if changed:
        await crawl.record_event("paused" if on else "resumed", f"{verb}: {', '.join(changed)}")
    if sites:
        moved = await change_blacklist(crawl, sites, add=on)
        changed += sorted(moved)
        unchanged += sorted(sites - moved)
    return changed, unchanged


async def _known_nodes(crawl: OpenedCrawl) -> set[str]:
    control = crawl.crawl_keys.control
    fields = [name.decode() for name in await crawl.client.command("HKEYS", control)]
    return await crawl.nodes() | {
        field.removeprefix(f"{PAUSED}:") for field in fields if field.startswith(f"{PAUSED}:")
    }


WAIT_S = 60.0
_LOOK_S = 0.5


def drain_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="every node, also those that start meanwhile")


def drain(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Stop nodes gracefully: their URLs and partitions go to other nodes.

    With --all the crawl is shut down; the usual command that starts it continues it. Takes some seconds, until running
    fetches have ended. Raises ConfigError if a node has not ended within a minute.
    """
    if bool(words) == opts.all:
        raise ConfigError("drain needs either nodes, or --all for every node")
    nodes = in_crawl(config, _drain_nodes, words)
    return Result({"drained": nodes}, "\n".join(f"the node has ended: {node}" for node in nodes) or "no node runs")


async def _drain_nodes(crawl: OpenedCrawl, words: Sequence[str]) -> list[str]:
    control = crawl.crawl_keys.control
    living = await crawl.nodes()
    meant = {word: ids_of(word, living) for word in words}
    if unknown := [word for word in words if not meant[word]]:
        raise ConfigError(f"no node {unknown[0]!r} runs; there are: {', '.join(sorted(living)) or 'none'}")
    asked: set[str] = set()
    wanted = {node for ids in meant.values() for node in ids} if words else living
    until = time.monotonic() + WAIT_S
    while left := wanted & living:
        if time.monotonic() > until:
            raise ConfigError(f"nodes were asked to end, but still run after {WAIT_S:g} s: {', '.join(sorted(left))}")
        for node in sorted(left - asked):
            await crawl.client.command("HSET", control, DRAINED + node, "1")
        asked |= left
        await asyncio.sleep(_LOOK_S)
        living = await crawl.nodes()
        wanted |= set() if words else living
    for node in asked:
        await crawl.client.command("HDEL", control, DRAINED + node)
    return sorted(asked)


def discovery(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show whether links are queued; with `off` or `on`, change it on every node within a second."""
    if words and words[0] not in ("on", "off"):
        raise ConfigError(f"discovery must be on or off, but is {words[0]!r}")
    data = in_crawl(config, _change_discovery, words[0] if words else "")
    return Result(data, discovery_text(data))


async def _change_discovery(crawl: OpenedCrawl, word: str) -> dict[str, Any]:
    now = await read_discovery(crawl)
    wanted = _new_discovery(now, word, crawl.client.now_ms())
    if wanted != now:
        await crawl.client.command("HSET", crawl.crawl_keys.control, DISCOVERY, wanted.field())
        await crawl.record_event("rule", f"discovery: {word}")
    return discovery_data(wanted)


def _new_discovery(now: Discovery, word: str, now_ms: int) -> Discovery:
    if word == "off" and now.is_on:
        return Discovery(is_on=False, off_from_ms=now_ms)
    if word == "on" and not now.is_on:
        return Discovery(is_on=True, off_from_ms=now.off_from_ms, off_until_ms=now_ms)
    return now


def discovery_text(data: dict[str, Any]) -> str:
    if not data["is_on"]:
        return f"discovery is off since {data['off_from']}: links found since are not queued"
    if data["off_from"] is None:
        return "discovery is on"
    return f"discovery is on; links found from {data['off_from']} to {data['off_until']} were not queued"
