from __future__ import annotations

from typing import NamedTuple

ALONE = "alone"


class Suspicion(NamedTuple):
    """The evidence against one URL; `answered` counts the deaths while the project's code had its page."""

    deaths: int
    answered: int
    was_alone: bool

    @classmethod
    def read(cls, text: bytes) -> Suspicion:
        deaths, answered, *mark = text.decode().split(" ")
        return cls(int(deaths), int(answered), mark == [ALONE])

    def is_proof(self, deaths_max: int) -> bool:
        return self.was_alone and (self.answered >= deaths_max or self.deaths >= 2 * deaths_max)

    def wants_solitude(self, deaths_max: int) -> bool:
        return self.deaths >= deaths_max - 1
