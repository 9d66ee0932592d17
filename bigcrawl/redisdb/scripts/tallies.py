"""Calls for what nodes count for the crawl's report."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.redisdb.scripts.call import Call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.redisdb.keys import CrawlKeys


class PutTallies(NamedTuple):
    """The result of a call.

    Attributes:
        is_listed: whether the node is among those that are alive or have died lately. If not, nothing was written.
        is_lost: whether the node's earlier tallies are not there any more, so that nothing was written.
        nodes: how many nodes have tallies there now.
    """

    is_listed: bool
    is_lost: bool
    nodes: int


def put_tallies(keys: CrawlKeys, node: str, tallies: bytes, *, is_first: bool = False) -> Call[PutTallies]:
    """Write what a node has counted since its start, replacing what it wrote before."""

    def parse(reply: int) -> PutTallies:
        return PutTallies(reply != -1, reply == 0, max(0, reply))

    return Call("put_tallies", (keys.tallies, keys.beats), (node, tallies, int(is_first)), parse)


def fold_tallies(keys: CrawlKeys, gone: str, before: str, total: bytes, nodes: Mapping[str, str]) -> Call[int]:
    """Replace the tallies of nodes that are gone by their sum. Result: 1; 0 if any is not as it was read.

    Args:
        keys: the crawl's.
        gone: the field of the sum.
        before: the SHA-1 of the sum as it was read, in hexadecimal; empty if there was none.
        total: the new sum, with the tallies of these nodes.
        nodes: the SHA-1 of the tallies of each, as they were read.
    """
    words = [word for row in nodes.items() for word in row]
    return Call("fold_tallies", (keys.tallies, keys.beats), (gone, before, total, *words), int)
