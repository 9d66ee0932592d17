from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.content.near_copies import NEAR, NO_PAGE, SLOTS, Rows, find_and_add, rows_of
from bigcrawl.content.sketches import BANDS, SKETCH_WORDS, Sketch, sketch_of
from bigcrawl.drum.bucket import EMPTY_BUCKET, Bucket
from bigcrawl.drum.files import DiskFiles
from tests.unit.content.pages import edited, page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def table_in(directory: Path, fresh_max: int = 1024) -> Bucket:
    return Bucket(directory, NEAR._replace(fresh_max=fresh_max), EMPTY_BUCKET, DiskFiles())


def ask(table: Bucket, *pages: tuple[int, bytes]) -> list[set[int]]:
    """The originals that the rows of each page name."""
    sketches = [(key, sketch) for key, body in pages if (sketch := sketch_of(body)) is not None]
    assert len(sketches) == len(pages)
    found = find_and_add(table, rows_of(sketches), table.commit).reshape(-1, BANDS).tolist()
    return [set(originals) - {NO_PAGE} for originals in found]


def test_a_near_copy_names_its_original(tmp_path: Path) -> None:
    """Whether both come in one batch, in two, or after the table has gone to disk."""
    table = table_in(tmp_path, fresh_max=0)
    assert ask(table, (1, page(1)), (2, page(2)), (3, edited(page(1), 1, 4))) == [set(), set(), {1}]
    assert ask(table, (4, edited(page(2), 2, 4)), (5, page(5))) == [{2}, set()]
    table._check()
    assert table.verify() == []


def test_a_page_that_comes_again_is_no_copy_of_itself(tmp_path: Path) -> None:
    """A batch that is folded again after a crash changes nothing."""
    table = table_in(tmp_path)
    ask(table, (1, page(1)), (2, edited(page(1), 1, 4)))
    before = table.state
    assert ask(table, (1, page(1)), (2, edited(page(1), 1, 4))) == [set(), {1}]
    assert table.state.memtable.bytes_from(0)[: len(before.memtable.bytes_from(0))] == before.memtable.bytes_from(0)


def test_a_band_holds_several_pages(tmp_path: Path) -> None:
    """Pages that share a band and are not alike take the next keys; more than that are not remembered."""
    rng = np.random.default_rng(1)
    sketches = rng.integers(0, 1 << 63, (SLOTS + 1, SKETCH_WORDS), dtype=np.uint64)
    table = table_in(tmp_path)
    same_band = np.full(len(sketches), 77, dtype=np.uint64)
    pages = np.arange(1, len(sketches) + 1, dtype=np.uint64)
    rows = Rows(same_band, pages, sketches)
    assert find_and_add(table, rows, table.commit).tolist() == [NO_PAGE] * len(sketches)
    again = Rows(same_band, pages + np.uint64(100), sketches)
    assert find_and_add(table, again, table.commit).tolist() == [*range(1, SLOTS + 1), NO_PAGE]


def test_rows_stand_page_by_page() -> None:
    """Each band of a page with its key and its sketch."""
    sketch = sketch_of(page(1))
    assert isinstance(sketch, Sketch)
    rows = rows_of([(9, sketch), (8, sketch)])
    assert rows.pages.tolist() == [9] * BANDS + [8] * BANDS
    assert rows.bands.tolist() == [*sketch.bands.tolist(), *sketch.bands.tolist()]
    assert (rows.sketches == sketch.packed).all()


def names(found: Sequence[set[int]]) -> int:
    return sum(bool(originals) for originals in found)


def test_near_copies_among_many_are_found_and_no_others(tmp_path: Path) -> None:
    """300 pages and 60 near copies of them, in batches of a size that cuts them apart."""
    table = table_in(tmp_path, fresh_max=256)
    pages = [(1 + seed, page(seed, 300)) for seed in range(300)]
    copies = [(1_001 + seed, edited(page(seed, 300), seed, 2)) for seed in range(60)]
    assert sum(names(ask(table, *pages[at : at + 70])) for at in range(0, 300, 70)) == 0
    found = ask(table, *copies)
    assert all(originals <= {1 + seed} for seed, originals in enumerate(found))
    assert names(found) >= 57
