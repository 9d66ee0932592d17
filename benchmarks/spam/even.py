"""What spam would cost if every pay-level domain were given the same, turn after turn: the least with equal budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


def even_share(sizes: Collection[int], share: float) -> int:
    """Return the fewest URLs that each PLD must be given until a share of all URLs is fetched.

    Args:
        sizes: URLs of each legitimate PLD, all known from the start; at least one.
        share: above 0, up to 1.
    """
    wanted = share * sum(sizes)
    low, high = 1, max(sizes)
    while low < high:
        middle = (low + high) // 2
        if sum(min(size, middle) for size in sizes) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low
