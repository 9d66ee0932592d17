"""Pages of seeded words, and copies of them with some words changed."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.content.sketches import shingles_of, sketches_of
from bigcrawl.content.text import texts_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

WORDS = ["".join(random.Random(seed).choices("etaoinshrdlucmfw", k=2 + seed % 8)) for seed in range(3_000)]


def page(seed: int, words: int = 1_500) -> bytes:
    """A page with markup, a script and a link for every thirty words."""
    rng = random.Random(seed)
    parts = [f"<!doctype html><html><head><script>var nonce = {seed};</script></head><body>"]
    for _ in range(0, words, 30):
        link, text = rng.choice(WORDS), " ".join(rng.choices(WORDS, k=30))
        parts += [f'<p class="text"><a href="/{link}.html">{text}</a></p>']
    return "\n".join(parts).encode()


def edited(body: bytes, seed: int, changes: int) -> bytes:
    """The page with words replaced at random places."""
    rng = random.Random(seed)
    words = body.split(b" ")
    plain = [at for at, word in enumerate(words) if word.isalpha()]  # no markup
    for at in rng.sample(plain, changes):
        words[at] = rng.choice(WORDS).encode()
    return b" ".join(words)


class Sketch(NamedTuple):
    """The sketch of one page."""

    packed: npt.NDArray[np.uint64]
    bands: npt.NDArray[np.uint64]
    gist: int


def sketch_of(body: bytes) -> Sketch | None:
    """The sketch of a page that is read alone; None if it has none."""
    made, packed, bands, gists = sketches_of([body])
    return Sketch(packed[0], bands[0], int(gists[0])) if made[0] else None


def hashes_of(body: bytes) -> npt.NDArray[np.uint32]:
    """The shingles of a page that is read alone."""
    return shingles_of(texts_of([body])).hashes


def words_of(*bodies: bytes) -> list[list[bytes]]:
    """The words of pages that are read together."""
    words, ends = texts_of(bodies)
    starts = [0, *ends]
    return [words[start:end].tobytes().replace(b"\0", b" ").split() for start, end in pairwise(starts)]
