"""What Redis and an owner hold as taken, compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.redisdb.scripts.call import Call, owned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.redisdb.keys import PartitionKeys
    from bigcrawl.redisdb.scripts.call import Identity


class Reconciled(NamedTuple):
    """The reply of `reconcile_partition`.

    Attributes:
        given_back: taken URLs that went back to their queues, for the owner did not hold them.
        taken_again: held URLs that Redis did not hold as taken.
        removed: ended URLs that were taken or queued.
        admitted: the last admit batch.
        ended: sequence numbers of the URLs whose end was told and carried out.
        queued: URLs in Redis that are not taken, by host; with the last portion only.
    """

    given_back: int
    taken_again: int
    removed: int
    admitted: int
    ended: list[int]
    queued: dict[str, int]


def reconcile_partition(
    keys: PartitionKeys,
    who: Identity,
    portion: int,
    delay_ms: int,
    held: Sequence[tuple[int, str, int, bytes]],
    earlier: Sequence[tuple[int]],
    told: Sequence[tuple[int]],
    ended: Sequence[tuple[int, str, int]],
    places: Sequence[tuple[str, int]],
    rests: Mapping[str, int],
    *,
    is_last: bool = True,
    server: str = "",
    now_ms: int = 0,
) -> Call[Reconciled]:
    """Make what Redis holds as taken equal to what the owner holds, and refuse what it sent before.

    Args:
        keys: of the partition.
        who: the owner, in a generation that begins with this call.
        portion: counted from 1; all have the same generation.
        delay_ms: of every host, after a Redis that forgot; 0 when it did not.
        held: (seq, host, order, member) of URLs.
        earlier: (seq,) of those that were in earlier portions.
        told: (seq,) of those whose end was told, and whether it was carried out is not known.
        ended: (seq, host, order) of URLs that are acknowledged.
        places: (host, order) where a URL held or gone may stand in a back queue.
        rests: ms from now that hosts must rest.
        is_last: whether there are no more portions.
        server: run id of the server, which knows all fetches of the owner after this.
        now_ms: the time, for tests.
    """

    def parse(reply: list[Any]) -> Reconciled:
        given_back, taken_again, removed, admitted, carried_out, *queued = reply
        hosts = zip(map(bytes.decode, queued[::2]), queued[1::2], strict=True)
        return Reconciled(given_back, taken_again, removed, admitted, list(map(int, carried_out)), dict(hosts))

    counts = (len(held), len(earlier), len(told), len(ended), len(places))
    flat = [value for row in (*held, *earlier, *told, *ended, *places, *rests.items()) for value in row]
    return Call(
        "reconcile_partition",
        (keys.owner, keys.state, keys.ready, keys.busy, keys.taken, keys.back, keys.host),
        (now_ms, who.node, who.epoch, who.generation, portion, int(is_last), delay_ms, *counts, server, *flat),
        owned(keys, parse),
        keys.partition,
    )
