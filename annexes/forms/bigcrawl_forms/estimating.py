"""How many records there are, by how often queries found the same ones (capture and recapture).

For m queries, S records found, f1 of them by one query and f2 by two:

    estimate    S + (m - 1)/m * f1 (f1 - 1) / (2 (f2 + 1))          Chao's, bias-corrected, for incidence
    interval    log-normal about the records that are left, so it never begins below S

Records that no query can find do not count, and those that are easier to find than others make it a lower bound.

Source: Chao, "Estimating the population size for capture-recapture data with unequal catchability" (Biometrics 1987);
variance as in Colwell, EstimateS, appendix B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

_Z_95: Final = 1.96


@dataclass(frozen=True, slots=True)
class Total:
    """An estimated number of records, and its bounds at 95 % confidence."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:,.0f} ({self.low:,.0f} to {self.high:,.0f})"


def estimate_total(found: int, once: int, twice: int, queries: int) -> Total:
    """Estimate the number of records; with fewer than two queries nothing is known beyond `found`.

    Args:
        found: different records.
        once: records that one query found.
        twice: records that two found.
        queries: how many queries found any.
    """
    if queries < 2 or not found:
        return Total(found, found, math.inf)
    share = (queries - 1) / queries
    left = share * once * (once - 1) / (2 * (twice + 1))
    if left <= 0:
        return Total(found, found, found + once)
    variance = (
        left
        + share**2 * once * (2 * once - 1) ** 2 / (4 * (twice + 1) ** 2)
        + share**2 * once**2 * twice * (once - 1) ** 2 / (4 * (twice + 1) ** 4)
    )
    spread = math.exp(_Z_95 * math.sqrt(math.log1p(variance / left**2)))
    return Total(found + left, found + left / spread, found + left * spread)
