"""A partition's hosts and their records: failures, robots rules, and loans to other nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb.scripts.call import Call, owned

if TYPE_CHECKING:
    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts.call import Identity

RETIRED_MS = 10**15
"""A host that is due so long after today, or later, is retired: it is never due."""


def retire_hosts(keys: PartitionKeys, who: Identity, failures_max: int, now_ms: int = 0) -> Call[int]:
    """Retire the snoozed hosts that have failed so often; how many there were."""
    return Call(
        "retire_hosts",
        (keys.owner, keys.state, keys.ready, keys.host, keys.snoozed),
        (now_ms, who.node, who.epoch, who.generation, failures_max),
        owned(keys, int),
        keys.partition,
    )


def awaken_host(keys: PartitionKeys, host: str, now_ms: int = 0) -> Call[bool]:
    """Forget that a host has failed: it is due at once; False when it had not failed."""
    return Call("awaken_host", (keys.state, keys.ready, keys.host, keys.snoozed), (now_ms, host), bool)


def borrow_host(
    keys: PartitionKeys, host: str, ticket: str, ahead_ms: int, deadline_ms: int, now_ms: int = 0
) -> Call[tuple[bool, int]]:
    """Borrow a host for one fetch: (True, ms until its start), or (False, ms until asking again)."""
    return Call(
        "borrow_host",
        (keys.ready, keys.busy, keys.host),
        (now_ms, host, ticket, ahead_ms, deadline_ms),
        lambda reply: (bool(reply[0]), int(reply[1])),
    )


def return_host(keys: PartitionKeys, host: str, ticket: str, delay_ms: int, now_ms: int = 0) -> Call[bool]:
    """Give a borrowed host back; False when it is not lent for this ticket any more."""
    return Call("return_host", (keys.ready, keys.host), (now_ms, host, ticket, delay_ms), bool)


def put_robots(
    keys: PartitionKeys,
    host: str,
    field: str,
    rules: bytes,
    expiry_ms: int,
    records_max: int,
    now_ms: int = 0,
    *,
    stale_ms: int = 0,
    bytes_max: int = 1 << 40,
    delay_ms: int = 0,
) -> Call[int]:
    """Keep robots rules for all nodes, and `stale_ms` beyond their expiry; the number of records evicted for it.

    `delay_ms` is the host's delay by these rules; 0 if it is not longer than usual.
    """
    return Call(
        "put_robots",
        (keys.host, keys.records, keys.ready, keys.busy, keys.rules),
        (now_ms, host, field, rules, expiry_ms, stale_ms, records_max, bytes_max, delay_ms),
        int,
    )
