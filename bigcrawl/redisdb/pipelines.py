"""How many commands go to Redis in one round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bigcrawl.redisdb.scripts import Value

_STRINGS: Final = (str, bytes)  # a union would be made anew for each word
CALLS_MAX = 512  # bounds the calls that a lost connection leaves in doubt, and the reply buffers
BYTES_MAX = 16 << 20  # takes less than the client waits for a reply, over a link of 10 Mbit/s


def divided(rows: Sequence[Sequence[Value]]) -> Iterator[Sequence[Sequence[Value]]]:
    """Divide commands into round trips of bounded number and size. A command above that size goes alone."""
    start = size = 0
    for at, row in enumerate(rows):
        row_size = sum([len(word) for word in row if isinstance(word, _STRINGS)])
        if at - start >= CALLS_MAX or (size + row_size > BYTES_MAX and at > start):
            yield rows[start:at]
            start, size = at, 0
        size += row_size
    if start < len(rows):
        yield rows[start:]
