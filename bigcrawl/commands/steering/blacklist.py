"""`scrapy frontier blacklist`: entries are hosts, PLDs, `*.` and a name, `re:` and a pattern, and addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.node.control import BLACKLISTED
from bigcrawl.scheduler.rules.blacklist import OFF, ON, parse_entries
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.orders import entries_of

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
        raise ConfigError(f"{_WHERE} wants add WHAT..., remove WHAT..., or list; {what}")
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
