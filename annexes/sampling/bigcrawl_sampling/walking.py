"""The choices of random walks.

They depend on the walk, its step and a seed alone: a step repeated after a crash chooses the same.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import ConfigError
from bigcrawl.url.key import PUBLIC_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

WALKS_MAX: Final = 1_000_000
LINKS_MAX: Final = 1_000  # of a page


class RandomWalks(NamedTuple):
    """The number of walks, the probability that a walk ends at each page, and the random seed."""

    walks: int
    restart: float
    seed: str

    @classmethod
    def parse_options(cls, walks: int | str, restart: float | str, seed: int | str) -> Self:
        try:
            found = cls(int(walks), float(restart), str(seed))
        except ValueError as error:
            raise ConfigError(f"walks must be a whole number, and restart a number: {error}") from None
        if not (1 <= found.walks <= WALKS_MAX and 0.01 <= found.restart <= 1):
            bounds = f"walks must be 1 to {WALKS_MAX}, and restart 0.01 to 1"
            raise ConfigError(f"walks is {walks}, and restart is {restart}; {bounds}")
        return found

    def first_url(self, walk: int, seeds: Sequence[str]) -> str:
        return self._random_for(walk, None).choice(seeds)

    def next_url(self, walk: int, step: int, links: Sequence[str]) -> str | None:
        """Return the next link of a walk; None if it ends here."""
        dice = self._random_for(walk, step)
        return dice.choice(links) if links and dice.random() >= self.restart else None

    def _random_for(self, walk: int, step: int | None) -> Random:
        return Random(f"{self.seed}/{walk}/{step}")


def links_to_choose_from(links: Iterable[str]) -> list[str]:
    """Return the distinct URLs with the lowest keys, in the order of the keys."""
    return sorted(set(links), key=PUBLIC_KEYS.of_url)[:LINKS_MAX]
