from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb.scripts.call import Call, Identity, parse_if_owned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.keys import PartitionKeys


def try_suspect(keys: PartitionKeys, identity: Identity, seq: int, *, alone: bool = True) -> Call[bool]:
    return Call(
        "try_suspect",
        (keys.owner, keys.taken, keys.deaths),
        (identity.node, identity.epoch, identity.generation, seq, int(alone)),
        parse_if_owned(keys, bool),
        keys.partition,
    )


def bury_url(keys: PartitionKeys, identity: Identity, key: int, letter: bytes, letters_max: int) -> Call[bool]:
    return Call(
        "bury_url",
        (keys.owner, keys.state, keys.dead),
        (identity.node, identity.epoch, identity.generation, key, letter, letters_max),
        parse_if_owned(keys, bool),
        keys.partition,
    )


def unbury_urls(keys: PartitionKeys, url_keys: Sequence[int]) -> Call[int]:
    return Call("unbury_urls", (keys.state, keys.dead), tuple(url_keys), int)
