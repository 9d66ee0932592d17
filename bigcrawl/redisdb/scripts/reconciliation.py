"""The call that compares the taken URLs of Redis and an owner."""

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
        given_back: taken URLs that went back to their queues, because the owner did not hold them.
        taken_again: held URLs that were not taken in Redis.
        removed: ended URLs that were taken or queued.
        admitted: the number of the last admit batch.
        ended: sequence numbers of the URLs whose end had been sent and was carried out.
        queued: URLs in Redis that are not taken, by host; only with the last portion.
    """

    given_back: int
    taken_again: int
    removed: int
    admitted: int
    ended: list[int]
    queued: dict[str, int]


def reconcile_partition(
    keys: PartitionKeys,
    identity: Identity,
    portion: int,
    delay_ms: int,
    held: Sequence[tuple[int, str, int, bytes]],
    earlier: Sequence[tuple[int]],
    sent_ends: Sequence[tuple[int]],
    ended: Sequence[tuple[int, str, int]],
    places: Sequence[tuple[str, int]],
    rests: Mapping[str, int],
    *,
    outcomes: bytes = b"",
    revisits: bytes = b"",
    is_last: bool = True,
    server: str = "",
    now_ms: int = 0,
) -> Call[Reconciled]:
    """Make the taken URLs in Redis equal to those that the owner holds, and refuse its earlier calls.

    Args:
        keys: of the partition.
        identity: the owner, in a generation that begins with this call.
        portion: counted from 1; all portions have the same generation.
        delay_ms: how long every host rests if Redis has forgotten; 0 if it has not.
        held: (seq, host, order, member) of held URLs.
        earlier: (seq,) of held URLs in earlier portions.
        sent_ends: (seq,) of URLs whose end was sent, but may not have been carried out.
        ended: (seq, host, order) of acknowledged URLs.
        places: (host, order) at which a held or ended URL may be in a back queue.
        rests: host -> ms from now that it must rest.
        outcomes: what the inbox was told of URLs that left lately, see `exchange_urls`.
        revisits: likewise.
        is_last: whether there are no more portions.
        server: run id of the server, which knows all fetches of the owner after this.
        now_ms: the time, for tests.
    """

    def parse(reply: list[Any]) -> Reconciled:
        given_back, taken_again, removed, admitted, carried_out, *queued = reply
        hosts = zip(map(bytes.decode, queued[::2]), queued[1::2], strict=True)
        return Reconciled(given_back, taken_again, removed, admitted, list(map(int, carried_out)), dict(hosts))

    counts = (len(held), len(earlier), len(sent_ends), len(ended), len(places))
    flat = [value for row in (*held, *earlier, *sent_ends, *ended, *places, *rests.items()) for value in row]
    return Call(
        "reconcile_partition",
        (keys.owner, keys.state, keys.ready, keys.busy, keys.taken, keys.back, keys.host, keys.inbox),
        (
            *(now_ms, identity.node, identity.epoch, identity.generation),
            *(portion, int(is_last), delay_ms, *counts, server, outcomes, revisits, *flat),
        ),
        owned(keys, parse),
        keys.partition,
    )
