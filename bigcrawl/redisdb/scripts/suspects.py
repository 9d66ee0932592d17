"""URLs that may have been the death of their nodes, and the letters that are kept of those that were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb.scripts.call import Call, owned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts.call import Identity


def try_suspect(keys: PartitionKeys, who: Identity, seq: int, *, alone: bool = True) -> Call[bool]:
    """Note that a suspect is tried alone, or is alone no more; False when it is not taken."""
    return Call(
        "try_suspect",
        (keys.owner, keys.taken, keys.deaths),
        (who.node, who.epoch, who.generation, seq, int(alone)),
        owned(keys, bool),
        keys.partition,
    )


def bury_url(keys: PartitionKeys, who: Identity, key: int, letter: bytes, letters_max: int) -> Call[bool]:
    """Keep a dead letter; False when there are too many."""
    return Call(
        "bury_url",
        (keys.owner, keys.state, keys.dead),
        (who.node, who.epoch, who.generation, key, letter, letters_max),
        owned(keys, bool),
        keys.partition,
    )


def unbury_urls(keys: PartitionKeys, url_keys: Sequence[int]) -> Call[int]:
    """Take dead letters away; how many there were."""
    return Call("unbury_urls", (keys.state, keys.dead), tuple(url_keys), int)
