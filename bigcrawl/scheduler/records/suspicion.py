"""The evidence against a URL that was in process when a node died (steps 9 to 11)."""

from __future__ import annotations

from typing import NamedTuple

ALONE = "alone"


class Suspicion(NamedTuple):
    """The evidence against one URL.

    Attributes:
        deaths: how many nodes died while it was in process.
        answered: in how many of these the project's code was at work on its page.
        was_alone: whether it was the only URL in process at the last death.
    """

    deaths: int
    answered: int
    was_alone: bool

    @classmethod
    def read(cls, text: bytes) -> Suspicion:
        """Return the suspicion that a field of the hash `deaths` holds."""
        deaths, answered, *mark = text.decode().split(" ")
        return cls(int(deaths), int(answered), mark == [ALONE])

    def is_proof(self, deaths_max: int) -> bool:
        """Whether the evidence suffices to stop trying the URL."""
        return self.was_alone and (self.answered >= deaths_max or self.deaths >= 2 * deaths_max)

    def wants_solitude(self, deaths_max: int) -> bool:
        """Whether the URL must be tried alone."""
        return self.deaths >= deaths_max - 1
