from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.drum.files import DiskFiles
from bigcrawl.scheduler.partition.fold.seen import EdgesFormatError, decode_edges, edge_keys, new_targets
from bigcrawl.scheduler.partition.tables import NO_TABLES, Tables
from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
from tests.support.keys import pld_key
from tests.support.worlds.partition_world import make_edges

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables.restore(EpochDirectory(tmp_path, 1, DiskFiles()), NO_TABLES)


def test_edges_are_read_as_they_were_written() -> None:
    """Pairs of keys, source first, in order; nothing is no edge."""
    edges = decode_edges(make_edges([("a.example", "b.example"), ("b.example", "a.example")]))
    a, b = pld_key("a.example"), pld_key("b.example")
    assert edges.tolist() == [[a, b], [b, a]]
    assert decode_edges(b"").shape == (0, 2)


@pytest.mark.parametrize("size", [1, 15, 17])
def test_a_part_of_an_edge_is_refused(size: int) -> None:
    """Only whole edges are edges."""
    with pytest.raises(EdgesFormatError, match=f"these are {size} bytes"):
        decode_edges(bytes(size))


def test_an_edge_and_its_reverse_have_different_keys() -> None:
    """The key is one of the ordered pair, and stays what it is: tables on disk were made with it."""
    edges = np.array([[1, 2], [2, 1], [0, 3], [3, 0], [2**64 - 1, 1]], dtype=np.uint64)
    assert len(set(edge_keys(edges).tolist())) == 5
    assert edge_keys(edges[:1]).tolist() == [16171810823986729605]


def test_an_edge_is_new_once(tables: Tables) -> None:
    """The target is told for each source that is new, in one batch or over many, and never for itself."""
    a, b, c = (pld_key(f"{name}.example") for name in "abc")

    def told(*pairs: str) -> list[int]:
        edges = decode_edges(make_edges((f"{pair[0]}.example", f"{pair[1]}.example") for pair in pairs))
        return new_targets(tables, edges).tolist()

    assert sorted(told("ab", "cb", "ab", "ba", "aa")) == sorted([b, b, a])
    assert told("ab", "aa") == []
    assert told("ac", "ab", "bc") == [c, c]
    assert told() == []
    assert len(tables.edges) == 5
