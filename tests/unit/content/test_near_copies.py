from __future__ import annotations

import hashlib
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.content.exact_copies import content_key
from bigcrawl.content.near_copies import SLOTS, find_near
from bigcrawl.content.sketched import NEAR, ROW, SKETCH_WORDS
from bigcrawl.content.sketches import BANDS
from bigcrawl.drum.bucket import EMPTY_BUCKET, Bucket
from bigcrawl.drum.files import DiskFiles
from tests.unit.content.pages import edited, page, sketch_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    import numpy.typing as npt

Pair = tuple[int, int]  # a content and the page that it is nearly that of


def table_in(directory: Path, fresh_max: int = 1024) -> Bucket:
    return Bucket(directory, NEAR._replace(fresh_max=fresh_max), EMPTY_BUCKET, DiskFiles())


def key_of(body: bytes) -> int:
    return content_key(hashlib.sha1(body, usedforsecurity=False).digest())


def rows_of(*pages: tuple[int, bytes], contents: dict[int, int] | None = None) -> npt.NDArray[Any]:
    """The rows of pages, given with their keys; a test may choose the contents' keys, by page."""
    rows = np.zeros(len(pages) * BANDS, dtype=ROW)
    for at, (key, body) in enumerate(pages):
        sketch = sketch_of(body)
        assert sketch is not None
        mine = rows[at * BANDS : (at + 1) * BANDS]
        mine["band"], mine["page"] = sketch.bands, key
        mine["content"] = contents[key] if contents else key_of(body)
        mine["sketch"] = sketch.packed
    return rows


def ask(table: Bucket, rows: npt.NDArray[Any]) -> set[Pair]:
    found = find_near(table, rows, table.commit)
    return set(zip(found.contents.tolist(), found.originals.tolist(), strict=True))


def test_pages_less_similar_than_asked_for_are_no_near_copies(tmp_path: Path) -> None:
    rows = rows_of((1, page(1)), (2, edited(page(1), 1, 4)), (3, page(1) + b"<!-- -->"))
    for similarity, copies in ((0.8, 2), (1.0, 1), (1.1, 0)):
        (directory := tmp_path / f"{similarity}").mkdir()
        table = table_in(directory, fresh_max=0)
        assert len(set(find_near(table, rows, table.commit, similarity).contents.tolist())) == copies


def test_of_two_similar_contents_the_larger_key_is_the_copy(tmp_path: Path) -> None:
    """Whichever comes first; in one batch, in two, or after the table has gone to disk."""
    bodies = {1: page(1), 2: edited(page(1), 1, 4), 3: page(3)}
    keys = {1: 500, 2: 400, 3: 450}
    for number, order in enumerate(permutations(bodies)):
        (directory := tmp_path / f"{number}").mkdir()
        table = table_in(directory, fresh_max=0)
        found = set.union(*(ask(table, rows_of((n, bodies[n]), contents=keys)) for n in order))
        assert found == {(500, 2)}
        assert ask(table_in(directory), rows_of(*((n, bodies[n]) for n in order), contents=keys)) == {(500, 2)}
        assert table.verify() == []


def test_what_comes_again_is_found_again_and_is_no_copy_of_itself(tmp_path: Path) -> None:
    """A batch that is folded again after a crash changes nothing; nor does the content at another page."""
    table = table_in(tmp_path)
    keys = {1: 10, 2: 20, 3: 10}
    rows = rows_of((1, page(1)), (2, edited(page(1), 1, 4)), contents=keys)
    assert ask(table, rows) == {(20, 1)}
    before = table.state
    assert ask(table, rows) == {(20, 1)}
    assert ask(table, rows_of((3, page(1)), contents=keys)) == set()
    assert table.state == before


def test_versions_of_a_page_are_no_copies_of_each_other(tmp_path: Path) -> None:
    """A page that is visited again, and has changed a little."""
    table = table_in(tmp_path)
    assert ask(table, rows_of((1, page(1)))) == ask(table, rows_of((1, edited(page(1), 1, 4)))) == set()


@pytest.mark.parametrize("at_once", [1, 3, 100])
@pytest.mark.parametrize("is_falling", [True, False])
def test_all_but_the_least_of_a_family_are_copies(tmp_path: Path, at_once: int, *, is_falling: bool) -> None:
    """Of many similar contents, in any order and batches, one is left, and it is nobody's copy."""
    table = table_in(tmp_path, fresh_max=50)
    keys = {1 + n: 1_000 + (-n if is_falling else n) for n in range(30)}
    family = [(key, edited(page(1), key, 1)) for key in keys]
    found = set()
    for at in range(0, len(family), at_once):
        found |= ask(table, rows_of(*family[at : at + at_once], contents=keys))
    pages = {content: page for page, content in keys.items()}
    assert {content for content, _ in found} == set(pages) - {min(pages)}
    assert all(keys[original] < content for content, original in found)


def test_a_band_holds_several_contents(tmp_path: Path) -> None:
    """Contents that share a band and are not alike take the next keys; more than that are not remembered."""
    rng = np.random.default_rng(1)
    rows = np.zeros(SLOTS + 1, dtype=ROW)
    rows["sketch"] = rng.integers(0, 1 << 63, (SLOTS + 1, SKETCH_WORDS), dtype=np.uint64)
    rows["band"], rows["page"] = 77, np.arange(1, SLOTS + 2)
    rows["content"] = rows["page"]
    table = table_in(tmp_path)
    assert ask(table, rows) == set()
    rows["page"] += np.uint64(100)
    rows["content"] += np.uint64(100)
    assert ask(table, rows) == {(101 + n, 1 + n) for n in range(SLOTS)}


def test_near_copies_among_many_are_found_and_no_others(tmp_path: Path) -> None:
    """300 pages and 60 near copies of them, in batches of a size that cuts them apart, each asked in four maps."""
    tables = []
    for number in range(4):
        (directory := tmp_path / f"p{number}").mkdir()
        tables.append(table_in(directory, fresh_max=256))
    pages = [(1 + seed, page(seed, 300)) for seed in range(300)]
    pages += [(1_001 + seed, edited(page(seed, 300), seed, 2)) for seed in range(60)]
    found = set()
    for at in range(0, len(pages), 70):
        rows = rows_of(*pages[at : at + 70])
        for number, table in enumerate(tables):
            found |= ask(table, rows[rows["band"] % 4 == number])
    keys = {key_of(body): key for key, body in pages}
    pairs = {tuple(sorted((keys[content], original))) for content, original in found}
    assert pairs <= {(1 + seed, 1_001 + seed) for seed in range(60)}
    assert len(pairs) >= 57
