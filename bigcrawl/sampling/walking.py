"""The choices of random walks: where each begins, where it goes on, and where it ends.

A choice is a function of the walk, its step and the seed of the random numbers. So a step that is repeated after a
crash chooses the same, and nodes share no state.
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
LINKS_MAX: Final = 1_000
"""Of a page, those with the lowest keys: to choose from, and kept in its item."""


class Walking(NamedTuple):
    """How many walks there are, and how they choose.

    Attributes:
        walks: 1 to `WALKS_MAX`.
        restart: the probability with which a walk ends at each page, 0.01 to 1.
        seed: of the random numbers; another seed makes other walks.
    """

    walks: int
    restart: float
    seed: str

    @classmethod
    def given(cls, walks: int | str, restart: float | str, seed: int | str) -> Self:
        """Return the walks that a spider's arguments describe.

        Raises:
            ConfigError: an argument is not a number, or is out of bounds.
        """
        try:
            found = cls(int(walks), float(restart), str(seed))
        except ValueError as error:
            raise ConfigError(f"walks must be a whole number, and restart a number: {error}") from None
        if not (1 <= found.walks <= WALKS_MAX and 0.01 <= found.restart <= 1):
            bounds = f"walks must be 1 to {WALKS_MAX}, and restart 0.01 to 1"
            raise ConfigError(f"walks is {walks} and restart {restart}; {bounds}")
        return found

    def start(self, walk: int, seeds: Sequence[str]) -> str:
        """Return the seed at which a walk begins."""
        return self._dice(walk, None).choice(seeds)

    def onward(self, walk: int, step: int, links: Sequence[str]) -> str | None:
        """Return the link to which a walk goes on; None if it ends here."""
        dice = self._dice(walk, step)
        return dice.choice(links) if links and dice.random() >= self.restart else None

    def _dice(self, walk: int, step: int | None) -> Random:
        return Random(f"{self.seed}/{walk}/{step}")


def choices(links: Iterable[str]) -> list[str]:
    """Return the URLs that a walk chooses from: canonical ones, each once, ordered by key, at most `LINKS_MAX`."""
    return sorted(set(links), key=PUBLIC_KEYS.of_url)[:LINKS_MAX]
