from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING

from bigcrawl.exceptions import RewoundError
from bigcrawl.redisdb.scripts.call import Call, Identity, parse_if_owned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts.call import Value


def admit_urls(
    keys: PartitionKeys,
    identity: Identity,
    number: int,
    packed_keys: bytes,
    connections: int,
    urls: Sequence[tuple[str, int, bytes]],
    now_ms: int = 0,
    *,
    chosen: int = 0,
    left_out: int = 0,
    head_start_ms: int = 0,
) -> Call[bool]:
    """Admit batch `number` of rows (host, order, member); False if it had been admitted before.

    `chosen` counts the URLs of all batches so far, `left_out` this batch's URLs that have ended since. Hosts without a
    record are due `head_start_ms` earlier than others.
    """
    by_host: defaultdict[str, list[Value]] = defaultdict(list)
    for host, order, member in urls:
        by_host[host] += (order, member)
    flat = chain.from_iterable((host, len(words), *words) for host, words in by_host.items())

    def parse(reply: int) -> bool:
        if reply == -2:
            raise RewoundError(
                f"partition {keys.partition}: admit batch {number} was refused, because Redis lacks the one before it"
            )
        return bool(reply)

    return Call(
        "admit_urls",
        (keys.owner, keys.state, keys.ready, keys.busy, keys.back, keys.host, keys.batches),
        (
            *(now_ms, identity.node, identity.epoch, number, packed_keys, connections),
            *(chosen, left_out, head_start_ms, *flat),
        ),
        parse_if_owned(keys, parse),
    )


def drop_urls(
    keys: PartitionKeys, identity: Identity, host: str, counter: str, urls: Sequence[tuple[bytes, bytes]]
) -> Call[int]:
    flat = [value for row in urls for value in row]
    return Call(
        "drop_urls",
        (keys.owner, keys.state, keys.ready, keys.back, keys.inbox),
        (identity.node, identity.epoch, identity.generation, host, counter, *flat),
        parse_if_owned(keys, int),
        keys.partition,
    )
