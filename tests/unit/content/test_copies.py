from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.content.copies import COPIES, EXACT, NEAR, CopyCounts, find_exact, read_copies, record_copies
from bigcrawl.content.exact_copies import CONTENTS
from bigcrawl.drum.bucket import EMPTY_BUCKET, Bucket
from bigcrawl.drum.files import DiskFiles

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.drum.bucket import ApplyResult


def commit(table: Bucket, result: ApplyResult) -> None:
    table.commit(result)


class Maps:
    """The two maps of a partition, with runs from early on."""

    def __init__(self, directory: Path, fresh_max: int = 50) -> None:
        files = DiskFiles()
        self.contents = Bucket(directory, CONTENTS._replace(fresh_max=fresh_max), EMPTY_BUCKET, files)
        self.copies = Bucket(directory, COPIES._replace(fresh_max=fresh_max), EMPTY_BUCKET, files)

    def find(self, *rows: tuple[int, int]) -> CopyCounts:
        contents, pages = (np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True))
        return find_exact(self.contents, self.copies, contents, pages, commit)

    def note(self, kind: int, *rows: tuple[int, int, int]) -> CopyCounts:
        pages, contents, originals = (np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True))
        return record_copies(self.copies, pages, contents, originals, kind, commit)

    def known(self) -> set[tuple[int, int, int, int]]:
        return set(map(tuple, read_copies(self.copies).tolist()))


def test_all_but_the_first_page_with_a_content_are_copies_of_it(tmp_path: Path) -> None:
    """Whatever comes again, in one batch or in several: nothing is its own copy, and nothing is counted twice."""
    maps = Maps(tmp_path)
    assert maps.find((70, 1), (71, 2), (70, 3), (70, 1), (70, 3)) == CopyCounts(exact=1)
    assert maps.find((70, 1), (70, 3), (71, 2)) == CopyCounts()
    assert maps.find((71, 1), (71, 3)) == CopyCounts(exact=2)
    assert maps.known() == {(3, 70, 1, EXACT), (1, 71, 2, EXACT), (3, 71, 2, EXACT)}


def test_an_exact_copy_takes_the_place_of_a_near_one(tmp_path: Path) -> None:
    """Whichever is found first; a near copy never takes that of an exact one, and the first original stays."""
    maps = Maps(tmp_path)
    assert maps.note(NEAR, (3, 70, 9), (3, 70, 8), (4, 71, 9)) == CopyCounts(near=2)
    assert maps.note(NEAR, (3, 70, 7)) == CopyCounts()
    assert maps.note(EXACT, (3, 70, 1), (5, 72, 1)) == CopyCounts(exact=2, near=-1)
    assert maps.note(NEAR, (5, 72, 9)) == CopyCounts()
    assert maps.known() == {(3, 70, 1, EXACT), (4, 71, 9, NEAR), (5, 72, 1, EXACT)}


def test_counts_are_those_of_the_map_however_batches_are_cut(tmp_path: Path) -> None:
    """By the word of a dict, with runs on disk."""
    rng = random.Random(1)
    maps, total = Maps(tmp_path), CopyCounts()
    first: dict[int, int] = {}
    expected = set()
    for _ in range(40):
        rows = [(rng.randrange(300), rng.randrange(1, 2_000)) for _ in range(rng.randrange(1, 120))]
        total += maps.find(*rows)
        for content, page in rows:
            if first.setdefault(content, page) != page:
                expected.add((page, content, first[content], EXACT))
    assert maps.known() == expected
    assert total == CopyCounts(exact=len(expected))
    for table in (maps.contents, maps.copies):
        table._check()
        assert table.verify() == []
