from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.content.sketched import ALIKE, SKETCH_WORDS
from bigcrawl.content.sketches import (
    BITS,
    PLACES,
    WORDS_MIN,
    Shingles,
    Sketches,
    are_alike,
    similarity,
    sketches_of,
    sketches_of_shingles,
)
from tests.unit.content.pages import edited, hashes_of, page, sketch_of

if TYPE_CHECKING:
    import numpy.typing as npt


def is_alike(some: bytes, others: bytes, least: float = ALIKE) -> bool:
    first, second = sketch_of(some), sketch_of(others)
    assert first is not None
    assert second is not None
    return bool(are_alike(first.packed[np.newaxis], second.packed[np.newaxis], least)[0])


@pytest.mark.parametrize("words", [240, 1_500, 12_000])
def test_sketches_tell_how_similar_pages_are(words: int) -> None:
    """Short pages, and long ones of which only a part is read, too."""
    body = page(1, words)
    for share in (0.0, 0.004, 0.01, 0.02):
        other = edited(body, 1, round(share * words))
        true = similarity(hashes_of(body), hashes_of(other))
        error = 0.02 + (1 - true) / 3  # the less similar pages are, the less sketches tell
        assert is_alike(body, other, true - error), share
        assert true == 1 or not is_alike(body, other, true + error), share


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
        assert is_alike(body, edited(body, seed, 5))
        assert not is_alike(body, page(seed + 100))


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
    return sketches_of_shingles(Shingles(np.concatenate(hashes), np.cumsum(counts)))


def test_a_sketch_is_the_parity_of_the_least_hashes_and_their_number() -> None:
    """By the word of a loop in Python, for pages of one shingle up to many, and for one without any between them."""
    rng = np.random.default_rng(1)
    pages = [rng.integers(0, 1 << 32, size, dtype=np.uint32) for size in (1, 2, 0, 48, 300, 3_000)]
    packed = sketches(*pages).packed
    for hashes, found in zip(pages, packed.tolist(), strict=True):
        least: dict[int, int] = {}
        for one in sorted(hashes.tolist(), reverse=True):
            least[(one >> 16) * PLACES >> 16] = one
        parity = 0
        for one in least.values():
            parity ^= 1 << one % BITS
        assert sum(word << 64 * nth for nth, word in enumerate(found)) == parity | len(least) << BITS


def test_a_gist_is_shared_by_near_copies_more_often_than_a_band() -> None:
    pairs = [(sketch_of(page(seed)), sketch_of(edited(page(seed), seed, 15))) for seed in range(100)]
    gists = sum(some is not None and other is not None and some.gist == other.gist for some, other in pairs)
    bands = sum(some is not None and other is not None and some.bands[0] == other.bands[0] for some, other in pairs)
    assert 100 > gists > bands
    assert len({some.gist for some, _ in pairs if some is not None}) == len(pairs)


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
    made, packed, bands, gists = sketches_of(bodies)
    for nth, body in enumerate(bodies):
        alone = sketches_of([body])
        assert alone.made[0] == made[nth]
        if made[nth]:
            assert (alone.packed[0].tolist(), alone.bands[0].tolist()) == (packed[nth].tolist(), bands[nth].tolist())
            assert alone.gists[0] == gists[nth]
    assert made.tolist() == [True, False, True, True, False, True]


def test_a_page_of_just_enough_words_has_a_sketch() -> None:
    """And none with one word less."""
    words = [b"%d" % number for number in range(WORDS_MIN)]
    assert sketches_of([b" ".join(words), b" ".join(words[1:])]).made.tolist() == [True, False]


def test_sketches_of_any_bits_are_compared() -> None:
    """Those of older versions, and of damaged rows."""
    rng = np.random.default_rng(1)
    some = rng.integers(0, 1 << 63, (50, SKETCH_WORDS), dtype=np.uint64)
    assert are_alike(some, some, 1.0).all()
    assert not are_alike(some, some[::-1], ALIKE).any()


def test_sketches_never_change() -> None:
    """Those on disk are compared with those of later versions."""
    sketch = sketch_of(b"Every Sketch is <b>made</b> of words: %b" % page(1))
    assert sketch is not None
    assert (hex(int(sketch.packed[0])), hex(int(sketch.bands[0]))) == (
        "0xe688940a33f48790",
        "0x44c76bba9937152d",
    )
