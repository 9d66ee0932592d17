"""Sites' lists of their own pages: `sitemaps` and `feeds`, read by `elements` in slices and without a tree.

`changefreqs` are the words for how often a page changes; `Reading` iterates over the output of a reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

T = TypeVar("T")


class Reading(Generic[T]):
    """The lists of entries that a reader yields, and then why it has not read the rest; empty: it has."""

    def __init__(self, lists: Generator[list[T], None, str]) -> None:
        self.limit = ""
        self._lists = lists

    def __iter__(self) -> Iterator[list[T]]:
        self.limit = yield from self._lists
