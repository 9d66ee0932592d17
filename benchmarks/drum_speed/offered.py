"""URLs as a crawl discovers them: one in nine is new (IRLbot's p), most of the others are of the page's own host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl.url.key import PUBLIC_KEYS
from bigcrawl_drum.aux_column import Aux

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray

CHUNK: Final = 50_000  # URLs handed over at a time, as a node gets them from a few hundred pages
LINKS_A_PAGE: Final = 54
NEW_A_PAGE: Final = 6  # one in nine
OWN_HOST_A_PAGE: Final = 36
URLS_A_HOST: Final = 2_000
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


def keys_and_aux(urls: list[str]) -> tuple[KeyArray, Aux]:
    """Return the keys of canonical URLs, and the URLs as aux."""
    return PUBLIC_KEYS.of_urls(urls), Aux.of(urls)


class Offers:
    """A deterministic stream of chunks. URLs are numbered in the order of their first offer.

    Args:
        known: so many URLs, from number 0 on, have been offered already.
    """

    def __init__(self, known: int, seed: int) -> None:
        self.known = known
        self._random = np.random.default_rng(seed)

    def chunk(self) -> list[str]:
        """Return about `CHUNK` URLs, of which those that are new are new for the first time."""
        pages = CHUNK // LINKS_A_PAGE
        numbers = np.empty((pages, LINKS_A_PAGE), dtype=np.int64)
        new = pages * NEW_A_PAGE
        numbers[:, :NEW_A_PAGE] = np.arange(self.known, self.known + new).reshape(pages, -1)
        hosts = self._random.integers(0, max(1, self.known // URLS_A_HOST), (pages, 1))
        own = self._random.integers(0, URLS_A_HOST, (pages, OWN_HOST_A_PAGE)) + hosts * URLS_A_HOST
        end = NEW_A_PAGE + OWN_HOST_A_PAGE
        numbers[:, NEW_A_PAGE:end] = own % self.known
        numbers[:, end:] = self._random.integers(0, self.known, (pages, LINKS_A_PAGE - end))
        self.known += new
        return urls_of(numbers.ravel())

    def first_ones(self, start: int, count: int) -> list[str]:
        """Return the URLs of these numbers, each once."""
        return urls_of(np.arange(start, start + count))


def urls_of(numbers: npt.NDArray[np.int64]) -> list[str]:
    """Return the canonical URL of each number: 72 bytes on average, 2,000 to a host."""
    mixed = numbers.astype(np.uint64) * _MIX
    hosts = (numbers // URLS_A_HOST).tolist()
    places = (numbers % URLS_A_HOST).tolist()
    return [
        f"https://www.site-{host}.example.com/articles/{place}/{mix:016x}.html"
        for host, place, mix in zip(hosts, places, mixed.tolist(), strict=True)
    ]
