from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bigcrawl.redisdb.scripts import Value

_STRINGS: Final = (str, bytes)
CALLS_MAX = 512  # limits the calls that a lost connection leaves in doubt
BYTES_MAX = 16 << 20  # sent within the reply timeout at 10 Mbit/s


def divide_commands(rows: Sequence[Sequence[Value]]) -> Iterator[Sequence[Sequence[Value]]]:
    """Divide commands into bounded round trips. A larger command goes alone."""
    start = size = 0
    for at, row in enumerate(rows):
        row_size = sum([len(word) for word in row if isinstance(word, _STRINGS)])
        if at - start >= CALLS_MAX or (size + row_size > BYTES_MAX and at > start):
            yield rows[start:at]
            start, size = at, 0
        size += row_size
    if start < len(rows):
        yield rows[start:]
