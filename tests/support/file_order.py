"""The order in which workers get files of tests: crawls, which wait, among others, which compute."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

F = TypeVar("F")

OTHERS_EACH: Final = 3
"""Other files for each crawl's. There are five: the crawls have begun when two thirds of the run are over."""


def mixed(crawls: Iterable[F], others: Iterable[F]) -> list[F]:
    """All files, crawls first: each is followed by a few others, as long as there are any, in their order."""
    left, order = iter(others), []
    for crawl in crawls:
        order.append(crawl)
        order += islice(left, OTHERS_EACH)
    return [*order, *left]
