from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.content.shingles import Shingles, similarity
from bigcrawl.content.sketched import SKETCH_WORDS
from bigcrawl.content.sketches import (
    ALIKE_MIN,
    PLACES,
    WORDS_MIN,
    Sketches,
    places_alike,
    sketches_of,
    sketches_of_shingles,
)
from tests.unit.content.pages import edited, hashes_of, page, sketch_of

if TYPE_CHECKING:
    import numpy.typing as npt


def alike(some: bytes, others: bytes) -> int:
    first, second = sketch_of(some), sketch_of(others)
    assert first is not None
    assert second is not None
    return int(places_alike(first.packed[np.newaxis], second.packed[np.newaxis])[0])


def test_sketches_tell_how_similar_pages_are() -> None:
    """The places that are equal estimate the similarity, besides one in four that is equal by chance."""
    body = page(1)
    for changes in (0, 3, 10, 40, 120):
        other = edited(body, changes, changes)
        true = similarity(hashes_of(body), hashes_of(other))
        estimate = (alike(body, other) / PLACES - 1 / 4) * 4 / 3
        assert abs(estimate - true) < 0.1, changes


def test_near_copies_share_a_band_and_others_do_not() -> None:
    """A few changed words leave a band as it is; other pages share none."""
    for seed in range(20):
        body = page(seed)
        first, second, other = sketch_of(body), sketch_of(edited(body, seed, 5)), sketch_of(page(seed + 100))
        assert first is not None
        assert second is not None
        assert other is not None
        assert (first.bands == second.bands).any()
        assert not (first.bands == other.bands).any()
        assert alike(body, edited(body, seed, 5)) >= ALIKE_MIN > alike(body, page(seed + 100))


def test_a_change_of_markup_and_scripts_is_no_change() -> None:
    """The sketch is of what a reader sees."""
    body = page(1)
    other = body.replace(b"nonce = 1", b"nonce = 2; x = '<p>'").replace(b'class="text"', b"")
    first, second = sketch_of(body), sketch_of(other)
    assert first is not None
    assert second is not None
    assert first.packed.tolist() == second.packed.tolist()


@pytest.mark.parametrize("body", [b"", b"<p>some words only</p>", b"<p>" * 5_000])
def test_a_page_of_few_words_has_no_sketch(body: bytes) -> None:
    """Too little is known of it to call it a copy."""
    assert sketch_of(body) is None


def sketches(*hashes: npt.NDArray[np.uint32]) -> Sketches:
    """The sketches of pages with these shingles."""
    counts = np.array([len(each) for each in hashes])
    return sketches_of_shingles(Shingles(np.concatenate(hashes), np.cumsum(counts), counts))


def test_a_range_without_hashes_has_the_next_one_of_its_page() -> None:
    """By the word of a loop in Python, for pages of one shingle up to many, and for one without any between them."""
    rng = np.random.default_rng(1)
    pages = [rng.integers(0, 1 << 32, size, dtype=np.uint32) for size in (1, 2, 0, 48, 300, 3_000)]
    packed = sketches(*pages).packed.view(np.uint8)
    for hashes, found in zip(pages, packed, strict=True):
        ascending = sorted(hashes.tolist())
        if not ascending:
            continue
        least = [next((h for h in ascending if h >= place << 24), ascending[0]) for place in range(PLACES)]
        quarter = PLACES // 4
        expected = [sum((least[at + part * quarter] & 3) << 2 * part for part in range(4)) for at in range(quarter)]
        assert found.tolist() == expected


def test_a_page_has_the_same_sketch_whatever_it_is_read_with() -> None:
    """Those of a batch are those of its pages."""
    bodies = [
        page(1),
        b"",
        page(2, 300),
        "".join(chr(0x4E00 + 37 * n) for n in range(400)).encode(),
        b"<" * 100_000,
        page(3),
    ]
    made, packed, bands = sketches_of(bodies)
    for nth, body in enumerate(bodies):
        alone = sketches_of([body])
        assert alone.made[0] == made[nth]
        if made[nth]:
            assert (alone.packed[0].tolist(), alone.bands[0].tolist()) == (packed[nth].tolist(), bands[nth].tolist())
    assert made.tolist() == [True, False, True, True, False, True]


def test_a_page_of_just_enough_words_has_a_sketch() -> None:
    """And none with one word less."""
    words = [b"%d" % number for number in range(WORDS_MIN)]
    assert sketches_of([b" ".join(words), b" ".join(words[1:])]).made.tolist() == [True, False]


def test_places_are_counted_one_by_one() -> None:
    """By the word of a count in Python, for sketches that differ anywhere."""
    rng = np.random.default_rng(1)
    some = rng.integers(0, 1 << 63, (50, SKETCH_WORDS), dtype=np.uint64)
    others = some.copy()
    others[rng.random(some.shape) < 0.5] ^= np.uint64(1 << 37)
    others[::3] = rng.integers(0, 1 << 63, (17, SKETCH_WORDS), dtype=np.uint64)
    expected = [
        sum((int(a) >> at & 3) == (int(b) >> at & 3) for a, b in zip(x, y, strict=True) for at in range(0, 64, 2))
        for x, y in zip(some, others, strict=True)
    ]
    assert places_alike(some, others).tolist() == expected


def test_sketches_never_change() -> None:
    """Those on disk are compared with those of later versions."""
    sketch = sketch_of(b"Every Sketch is <b>made</b> of words: %b" % page(1))
    assert sketch is not None
    assert (hex(int(sketch.packed[0])), hex(int(sketch.bands[0]))) == (
        "0xdcb48476e796f6c6",
        "0x6f05a35a9af968db",
    )
