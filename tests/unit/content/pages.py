"""Pages of seeded words, and copies of them with some words changed."""

from __future__ import annotations

import random

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
