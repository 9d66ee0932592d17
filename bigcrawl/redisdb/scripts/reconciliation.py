from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.redisdb.scripts.call import Call, Identity, parse_if_owned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.redisdb.keys import PartitionKeys


class ReconcileReply(NamedTuple):
    """The reply of `reconcile_partition`.

    `ended` are sequence numbers of sent ends that were carried out. `queued` comes only with the last portion.
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
    timed: bytes = b"",
    is_last: bool = True,
    server: str = "",
    now_ms: int = 0,
) -> Call[ReconcileReply]:
    """Make the taken URLs in Redis equal to those that the owner holds, and refuse its earlier calls.

    All portions have the generation that begins with the first. Rows: `held` (seq, host, order, member), `earlier` held
    URLs of earlier portions, `sent_ends` whose end may not have been carried out, `ended` (seq, host, order), `places`
    (host, order) that a held or ended URL may have in a back queue. `delay_ms` is how long every host rests if Redis
    has forgotten, `rests` how long each must rest.
    """

    def parse(reply: list[Any]) -> ReconcileReply:
        given_back, taken_again, removed, admitted, carried_out, *queued = reply
        hosts = zip(map(bytes.decode, queued[::2]), queued[1::2], strict=True)
        return ReconcileReply(given_back, taken_again, removed, admitted, list(map(int, carried_out)), dict(hosts))

    counts = (len(held), len(earlier), len(sent_ends), len(ended), len(places))
    flat = [value for row in (*held, *earlier, *sent_ends, *ended, *places, *rests.items()) for value in row]
    return Call(
        "reconcile_partition",
        (keys.owner, keys.state, keys.ready, keys.busy, keys.taken, keys.back, keys.host, keys.inbox),
        (
            *(now_ms, identity.node, identity.epoch, identity.generation),
            *(portion, int(is_last), delay_ms, *counts, server, outcomes, timed, *flat),
        ),
        parse_if_owned(keys, parse),
        keys.partition,
    )
