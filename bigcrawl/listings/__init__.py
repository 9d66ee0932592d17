"""Reads sites' lists of their own pages: `sitemaps` and `feeds`, parsed by `elements` in slices and without a tree.

`changefreqs` has the words for how often a page changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

T = TypeVar("T")


class ListReading(Generic[T]):
    """Iterates over a reader's lists of entries. Afterwards `limit` says why the rest was not read, if so."""

    def __init__(self, lists: Generator[list[T], None, str]) -> None:
        self.limit = ""
        self._lists = lists

    def __iter__(self) -> Iterator[list[T]]:
        self.limit = yield from self._lists
