"""What speaks against a URL that was in process when a node died (steps 9 to 11)."""

from __future__ import annotations

from typing import NamedTuple

ALONE = "alone"


class Suspicion(NamedTuple):
    """What speaks against a URL.

    Attributes:
        deaths: at which it was in process.
        answered: those of them at which its page was there.
        was_alone: whether nothing else was in process at the last.
    """

    deaths: int
    answered: int
    was_alone: bool

    @classmethod
    def read(cls, text: bytes) -> Suspicion:
        """Return what a field of the hash `deaths` says."""
        deaths, answered, *mark = text.decode().split(" ")
        return cls(int(deaths), int(answered), mark == [ALONE])

    def is_proof(self, deaths_max: int) -> bool:
        """Whether the URL is not to be tried any more."""
        return self.was_alone and (self.answered >= deaths_max or self.deaths >= 2 * deaths_max)

    def wants_solitude(self, deaths_max: int) -> bool:
        """Whether it is tried alone."""
        return self.deaths >= deaths_max - 1
