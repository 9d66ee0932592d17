"""`scrapy frontier pause` and `resume`: a paused host or PLD is on the blacklist until it is resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.commands.result import Result
from bigcrawl.commands.steering.blacklist import change_blacklist
from bigcrawl.scheduler.node.control import PAUSED
from bigcrawl.scheduler.rules.blacklist import parse_entries
from bigcrawl.views.opened_crawl import ids_of, in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl


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
    """Return a hint that a name without a dot, perhaps a misspelled node, was taken for a host."""
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
