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
    """One script call.

    Attributes:
        in_doubt: the partition to reconcile if the reply is lost, None if a repeat is safe.
        beside: further keys, which have another hash tag. A cluster's servers do not get them.
    """

    name: str
    keys: tuple[str, ...]
    args: tuple[Value, ...]
    parse: Callable[[Any], T]
    in_doubt: int | None = None
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller. Each claim or reconciliation raises its generation, which makes earlier calls void."""

    node: str
    epoch: int
    generation: int = 0


_ANOTHER_OWNER, _STALE = -1, -3


def parse_if_owned(partition: PartitionKeys, parse: Callable[[Any], T]) -> Callable[[Any], T]:
    def parse_owned(reply: Any) -> T:
        code = reply[0] if isinstance(reply, list) else reply
        if code in (_ANOTHER_OWNER, _STALE):
            raise_refusal(partition, code)
        return parse(reply)

    return parse_owned


def raise_refusal(partition: PartitionKeys, code: int) -> NoReturn:
    if code == _ANOTHER_OWNER:
        raise OwnershipLostError(f"partition {partition.partition} has another owner")
    raise StaleCallError(f"partition {partition.partition} was reconciled while a call was under way")
