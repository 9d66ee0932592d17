"""What all calls have in common: the call itself, who makes it, and how a refusal is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar

from bigcrawl.exceptions import OwnershipLostError, StaleCallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.redisdb.keys import PartitionKeys

T = TypeVar("T")
Value = str | bytes | int | float


class Call(NamedTuple, Generic[T]):
    """One script call, ready to be sent: name, keys, arguments and how to read the reply.

    `in_doubt` is the partition of which its owner knows less than before when no reply comes: whether the call was
    carried out, is or will be. None for calls that leave no doubt.
    """

    name: str
    keys: tuple[str, ...]
    args: tuple[Value, ...]
    parse: Callable[[Any], T]
    in_doubt: int | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks: checked by the scripts that change a partition.

    The node, its epoch, and the generation: a number of the node's own that rises with each claim and each comparison
    of what both sides hold, so that nothing it sent before can be carried out after.
    """

    node: str
    epoch: int
    generation: int = 0


_ANOTHER_OWNER, _STALE = -1, -3


def owned(partition: PartitionKeys, parse: Callable[[Any], T]) -> Callable[[Any], T]:
    """Read a reply with `parse`, unless it is a refusal: see `refuse`."""

    def parse_owned(reply: Any) -> T:
        code = reply[0] if isinstance(reply, list) else reply
        if code in (_ANOTHER_OWNER, _STALE):
            refuse(partition, code)
        return parse(reply)

    return parse_owned


def refuse(partition: PartitionKeys, code: int) -> NoReturn:
    """Raise what the code of a refusal means; `lua/prelude/refusal.lua` gives them."""
    if code == _ANOTHER_OWNER:
        raise OwnershipLostError(f"partition {partition.partition} has another owner")
    raise StaleCallError(f"partition {partition.partition} was compared with Redis while it was being asked")
