"""Calls that claim, inspect and release partitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb.scripts.call import Call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts.call import Identity, Value


@dataclass(frozen=True, slots=True)
class GrantedClaim:
    epoch: int
    admitted: int
    inbox_id: str
    returned: int
    committed: bool
    generation: int = field(default=0, compare=False)
    deaths: Mapping[int, bytes] = field(default_factory=dict)
    rest_ms: int = field(default=0, compare=False)  # how long hosts wait whose last fetches Redis may not know


@dataclass(frozen=True, slots=True)
class RefusedClaim:
    """A refused claim. If `left_ms` is 0, repeat the claim with the URLs that the owner had in process."""

    left_ms: int
    node: str
    token: str


@dataclass(frozen=True, slots=True)
class PartitionView:
    now_ms: int
    owned: bool
    node: str
    epoch: int
    lease_left_ms: int
    hosts_ready: int
    hosts_waiting: int
    hosts_busy: int
    next_due_ms: int
    taken: int
    inbox_id: str
    fields: dict[bytes, bytes]  # undecoded: an owner needs few of them
    hosts_snoozed: int = 0
    hosts_retired: int = 0

    @property
    def state(self) -> dict[str, str]:
        return {
            name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in self.fields.items()
        }

    @property
    def last_folded_entry(self) -> str:
        """The last inbox entry in a committed step; "0-0" before the first."""
        return self.fields.get(b"folded", b"0-0").decode()

    @property
    def is_begun(self) -> bool:
        """Whether the partition has had a step, according to Redis; before that, its inbox is complete."""
        return bool(self.count("committed") or self.fields.get(b"trimmed") or self.count("manifest") > 1)

    def count(self, field: str) -> int:
        return int(self.fields.get(field.encode(), 0))


def claim_partition(
    keys: PartitionKeys,
    *,
    node: str,
    token: str,
    lease_ms: int,
    epoch_min: int,
    dead_token: str,
    deadline_ms: int,
    abort_ms: int,
    forgotten_ms: int,
    delay_ms: int,
    generation: int,
    now_ms: int = 0,
    told_of: str = "*",
    in_process: str = "*",
    server: str = "",
) -> Call[GrantedClaim | RefusedClaim]:
    def parse(reply: list[Any]) -> GrantedClaim | RefusedClaim:
        if reply[0] == 0:
            return RefusedClaim(int(reply[1]), reply[2].decode(), reply[3].decode())
        deaths = dict(zip(map(int, reply[6][::2]), reply[6][1::2], strict=True))
        epoch, admitted, returned = int(reply[1]), int(reply[2]), int(reply[4])
        return GrantedClaim(
            epoch, admitted, reply[3].decode(), returned, bool(reply[5]), generation, deaths, int(reply[7])
        )

    return Call(
        "claim_partition",
        (keys.owner, keys.state, keys.ready, keys.busy, keys.taken, keys.back, keys.inbox, keys.host, keys.deaths),
        (
            *(now_ms, node, token, lease_ms, epoch_min, dead_token, deadline_ms, delay_ms, generation),
            *(told_of, in_process, server, abort_ms, forgotten_ms),
        ),
        parse,
        beside=(keys.leases,),
    )


def renew_leases(
    partitions: Sequence[PartitionKeys], node: str, epochs: Sequence[int], lease_ms: int, now_ms: int = 0
) -> Call[list[int]]:
    """Renew leases of partitions of one block; on a cluster, of one. Return the indices of those that are not owned."""
    args = (now_ms, node, lease_ms, " ".join(map(str, epochs)))
    names = tuple(name for keys in partitions for name in (keys.owner, keys.leases))
    return Call("renew_leases", names[:-1], args, lambda lost: [place - 1 for place in lost], beside=names[-1:])


def renew_block_leases(
    blocks: Mapping[str, Sequence[tuple[int, int]]], node: str, lease_ms: int, now_ms: int = 0
) -> Call[list[str]]:
    """Renew block leases. Return the blocks for which `renew_leases` must be called instead.

    `blocks` has a partition and its epoch in each row, by `PartitionKeys.leases`.
    """
    texts = ["".join(f"{partition}:{epoch} " for partition, epoch in rows) for rows in blocks.values()]
    names = tuple(blocks)
    args: tuple[Value, ...] = (now_ms, node, lease_ms, *texts)
    return Call("renew_block_leases", names, args, lambda others: [names[place - 1] for place in others])


def look_partition(
    keys: PartitionKeys,
    identity: Identity | None = None,
    lease_ms: int = 0,
    now_ms: int = 0,
    *,
    is_brief: bool = False,
) -> Call[PartitionView]:
    """Read the state of the partition, and renew its lease if `identity` owns it and `lease_ms` is not 0.

    A brief view is faster; its `hosts_...` and `taken` are 0, and `inbox_id` is "0-0" if the inbox is empty.
    """

    def parse(reply: list[Any]) -> PartitionView:
        epoch, lease_left, ready, waiting, busy, next_due, taken = (int(value) for value in reply[3:10])
        return PartitionView(
            now_ms=int(reply[0]),
            owned=bool(reply[1]),
            node=reply[2].decode(),
            epoch=epoch,
            lease_left_ms=lease_left,
            hosts_ready=ready,
            hosts_waiting=waiting,
            hosts_busy=busy,
            next_due_ms=next_due,
            taken=taken,
            inbox_id=reply[10].decode(),
            fields=dict(zip(reply[11][::2], reply[11][1::2], strict=True)),
            hosts_snoozed=int(reply[12]),
            hosts_retired=int(reply[13]),
        )

    node, epoch = (identity.node, identity.epoch) if identity else ("", 0)
    return Call(
        "look_partition",
        (keys.owner, keys.state, keys.ready, keys.busy, keys.taken, keys.inbox, keys.snoozed),
        (now_ms, node, epoch, lease_ms, int(is_brief)),
        parse,
        beside=(keys.leases,),
    )


def release_partition(keys: PartitionKeys, identity: Identity) -> Call[int]:
    """Release it. Return 1: released, 0: not owned, -1: URLs are still taken, -3: reconciled meanwhile."""
    args = (identity.node, identity.epoch, identity.generation)
    return Call("release_partition", (keys.owner, keys.taken), args, int, keys.partition, beside=(keys.leases,))
