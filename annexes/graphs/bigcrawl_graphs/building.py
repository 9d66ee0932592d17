"""Builds a graph of names on disk, in bounded memory; nodes are ordered by name, edges by node.

Names and edges are sorted on disk (`bigcrawl.page_index.sorted_lines`), edges by 64-bit keys of their names. `nodes`
numbers the sorted names, and records the number of each key. `edges` merges edges sorted by target with the numbers
sorted by key, then the same by source. Then it sorts by both and sums equal edges.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from bigcrawl.exceptions import ContractError
from bigcrawl.page_index.sorted_lines import SortedLines
from bigcrawl.url.key import SECRET_BYTES, Keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

BYTES_MAX: Final = 32 << 20
"""Memory for one sort; each graph needs two sorts at once."""
_TOGETHER_MAX: Final = 1 << 17  # names, and edges, merged in memory before they are sorted
_KEY_CHARS: Final = 16
_SOURCE, _TARGET = b"1", b"0"


class Node(NamedTuple):
    """A node, numbered from 0 in the order of its name's bytes; `has_page` if it was added as a source."""

    number: int
    name: str
    has_page: bool


class Edge(NamedTuple):
    """An edge between nodes; `links` is the number of links that it stands for."""

    source: int
    target: int
    links: int


class GraphBuilder:
    """Builds a graph: call `add` first, then exhaust `nodes` once, then `edges` once. Not thread-safe.

    All methods raise OSError if the disk refuses. Names must have no blanks or controls, like canonical URLs and hosts.
    `directory` gets unnamed temporary files, which vanish with the process; `bytes_max` is the memory for one sort.
    """

    def __init__(self, directory: Path, bytes_max: int = BYTES_MAX) -> None:
        self._directory = directory
        self._bytes_max = bytes_max
        self._key = Keys(os.urandom(SECRET_BYTES)).of_bytes
        self._names = self._new_sorter()
        self._pairs = self._new_sorter()
        self._named: dict[str, bool] = {}
        self._paired: dict[tuple[str, str], int] = {}
        self._numbers: BinaryIO | None = None
        self.node_count = 0

    def __repr__(self) -> str:
        return f"<GraphBuilder nodes={self.node_count}>"

    def close(self) -> None:
        self._names.close()
        self._pairs.close()
        if self._numbers is not None:
            self._numbers.close()

    def add(self, source: str, targets: Iterable[str]) -> None:
        """Add a node, and a link to each of the targets. Cost: 4 us per link."""
        self._named[source] = True
        for target in targets:
            self._named.setdefault(target, False)
            self._paired[source, target] = self._paired.get((source, target), 0) + 1
        if len(self._named) >= _TOGETHER_MAX:
            self._pass_names()
        if len(self._paired) >= _TOGETHER_MAX:
            self._pass_pairs()

    def nodes(self) -> Iterator[Node]:
        self._pass_names()
        self._pass_pairs()
        numbers = self._new_sorter()
        name, has_page = b"", False
        for line in self._names:
            other, _, kind = line.rstrip(b"\n").partition(b" ")
            if other != name:
                if name:
                    yield self._number_node(name, numbers, has_page=has_page)
                name, has_page = other, False
            has_page = has_page or kind == _SOURCE
        if name:
            yield self._number_node(name, numbers, has_page=has_page)
        self._names.close()
        self._numbers = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115 - closed with the others
        self._numbers.writelines(numbers)
        numbers.close()

    def edges(self) -> Iterator[Edge]:
        """Yield the edges by source, then by target, each once."""
        by_source = self._new_sorter()
        for target, rest in self._with_numbers(self._pairs):
            source, _, links = rest.partition(b" ")
            by_source.add(b"%s %s %s" % (source, target, links))
        self._pairs.close()
        by_number = self._new_sorter()
        for source, rest in self._with_numbers(by_source):
            by_number.add(b"%s %s" % (source, rest))
        by_source.close()
        last = Edge(-1, -1, 0)
        for line in by_number:
            edge = Edge(*(int(part, 16) for part in line.split()))
            if edge[:2] == last[:2]:
                last = last._replace(links=last.links + edge.links)
                continue
            if last.links:
                yield last
            last = edge
        if last.links:
            yield last
        by_number.close()

    def _new_sorter(self) -> SortedLines:
        return SortedLines(self._directory, self._bytes_max)

    def _pass_names(self) -> None:
        for name, has_page in self._named.items():
            self._names.add(b"%s %s\n" % (name.encode(), _SOURCE if has_page else _TARGET))
        self._named = {}

    def _pass_pairs(self) -> None:
        for (source, target), links in self._paired.items():
            keys = self._key(target.encode()), self._key(source.encode())
            self._pairs.add(b"%016x %016x %x\n" % (*keys, links))
        self._paired = {}

    def _number_node(self, name: bytes, numbers: SortedLines, *, has_page: bool) -> Node:
        node = Node(self.node_count, name.decode(), has_page)
        numbers.add(b"%016x %012x\n" % (self._key(name), node.number))
        self.node_count += 1
        return node

    def _with_numbers(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        if self._numbers is None:
            raise ContractError("nodes() must be read before edges()")
        self._numbers.seek(0)
        numbers = iter(self._numbers)
        key, number = b"", b""
        for line in lines:
            wanted = line[:_KEY_CHARS]
            while key < wanted:
                key, _, number = next(numbers).rstrip(b"\n").partition(b" ")
            yield number, line[_KEY_CHARS + 1 :]
