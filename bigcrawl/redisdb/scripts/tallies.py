from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.redisdb.scripts.call import Call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.redisdb.keys import CrawlKeys


class PutTallies(NamedTuple):
    """The result of `put_tallies`, which writes nothing for an unknown node or if its earlier tallies are lost."""

    is_listed: bool
    is_lost: bool
    nodes: int


def put_tallies(keys: CrawlKeys, node: str, tallies: bytes, *, is_first: bool = False) -> Call[PutTallies]:
    def parse(reply: int) -> PutTallies:
        return PutTallies(reply != -1, reply == 0, max(0, reply))

    return Call("put_tallies", (keys.tallies, keys.beats), (node, tallies, int(is_first)), parse)


def fold_tallies(keys: CrawlKeys, gone: str, before: str, total: bytes, nodes: Mapping[str, str]) -> Call[int]:
    """Replace tallies of nodes that are gone by their sum. Return 0 if any does not match its SHA-1."""
    words = [word for row in nodes.items() for word in row]
    return Call("fold_tallies", (keys.tallies, keys.beats), (gone, before, total, *words), int)
