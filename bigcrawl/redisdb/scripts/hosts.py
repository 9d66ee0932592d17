from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.redisdb.scripts.call import Call, Identity, parse_if_owned

if TYPE_CHECKING:
    from bigcrawl.redisdb.keys import PartitionKeys

RETIRED_MS = 10**15


def retire_hosts(keys: PartitionKeys, identity: Identity, failures_max: int, now_ms: int = 0) -> Call[int]:
    return Call(
        "retire_hosts",
        (keys.owner, keys.state, keys.ready, keys.host, keys.snoozed),
        (now_ms, identity.node, identity.epoch, identity.generation, failures_max),
        parse_if_owned(keys, int),
        keys.partition,
    )


def awaken_host(keys: PartitionKeys, host: str, now_ms: int = 0) -> Call[bool]:
    return Call("awaken_host", (keys.state, keys.ready, keys.host, keys.snoozed), (now_ms, host), bool)


def borrow_host(
    keys: PartitionKeys, host: str, ticket: str, ahead_ms: int, deadline_ms: int, now_ms: int = 0
) -> Call[tuple[bool, int]]:
    """Borrow a host for one fetch. Return (True, ms until its start), or (False, ms until the next request)."""
    return Call(
        "borrow_host",
        (keys.ready, keys.busy, keys.host),
        (now_ms, host, ticket, ahead_ms, deadline_ms),
        lambda reply: (bool(reply[0]), int(reply[1])),
    )


def return_host(keys: PartitionKeys, host: str, ticket: str, delay_ms: int, now_ms: int = 0) -> Call[bool]:
    """Return a borrowed host; False if it is no longer lent."""
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
    """Store robots rules, and return the number of evicted records; `delay_ms` is 0 if not longer than usual."""
    return Call(
        "put_robots",
        (keys.host, keys.records, keys.ready, keys.busy, keys.rules),
        (now_ms, host, field, rules, expiry_ms, stale_ms, records_max, bytes_max, delay_ms),
        int,
    )
