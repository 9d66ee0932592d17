"""Pages of seeded words with near copies of them, and how similar two pages truly are."""

from __future__ import annotations

import random
import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.model.web import Web

PAGE_BYTES: Final = 21_000
LINKS: Final = 60
PHRASE_WORDS: Final = 4
_PORT: Final = 80
_FOUND: Final = 200

_no_text = re.compile(rb"<[^>]*>")
_rng = random.Random(7)
_WORDS: Final = ["".join(_rng.choices("etaoinshrdlucmfw", k=_rng.randint(2, 9))) for _ in range(5_000)]


class Pair(NamedTuple):
    """A page and a page made of it, with their Jaccard similarity by phrases of four words."""

    original: bytes
    other: bytes
    similarity: float


def page(seed: int, size: int = PAGE_BYTES) -> bytes:
    """A page of `size` bytes with 60 links, three tags each."""
    rng = random.Random(seed)
    per_link = size // LINKS
    parts = ["<!doctype html><html><head><title>x</title></head><body>"]
    for _ in range(LINKS):
        part = f'<p class="text"><a href="/{rng.choice(_WORDS)}/index.html">{rng.choice(_WORDS)}</a>'
        while len(part) < per_link - 5:
            part += f" {rng.choice(_WORDS)}"
        parts.append(part + "</p>\n")
    return "".join(parts).encode()


def simulated_pages(hosts: int = 800) -> list[bytes]:
    """All pages of a simulated web with copies, in the order of its links: a fifth exact copies, a tenth near ones."""
    web = Web(1, hosts, 12, features=frozenset({Feature.COPIES}))
    pages = [urlsplit(url) for url, status in web.reachable(_PORT, web.seeds(_PORT)).items() if status == _FOUND]
    return [web.answer(url.hostname or "", urlunsplit(url._replace(scheme="", netloc="")), _PORT).body for url in pages]


def pair(seed: int, share: float, size: int = PAGE_BYTES) -> Pair:
    """A page, and it with a share of its words replaced: half of them one by one, half in one block."""
    rng = random.Random(seed * 31 + 1)
    original = page(seed, size)
    words = original.decode().split(" ")
    plain = [at for at, word in enumerate(words) if word.isalpha()]
    changes = round(share * len(plain))
    start = rng.randrange(max(1, len(plain) - changes))
    for at in (*rng.sample(plain, changes - changes // 2), *plain[start : start + changes // 2]):
        words[at] = rng.choice(_WORDS)
    other = " ".join(words).encode()
    return Pair(original, other, true_similarity(original, other))


def true_similarity(some: bytes, others: bytes) -> float:
    """Jaccard of the sets of all phrases of four words, word by word: no sketch, no sample, no window of bytes."""
    first, second = _phrases(some), _phrases(others)
    both = len(first | second)
    return len(first & second) / both if both else 0.0


def _phrases(body: bytes) -> set[tuple[bytes, ...]]:
    words = _no_text.sub(b" ", body).lower().split()
    return {tuple(words[at : at + PHRASE_WORDS]) for at in range(len(words) - PHRASE_WORDS + 1)}
