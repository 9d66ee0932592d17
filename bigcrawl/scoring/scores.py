"""The priority of a URL's score; spiders and prioritizers score on this scale.

    score           priority     level of the front queues (`bigcrawl.scheduler.queues.front_queues`)
    below 0         -1,000..-1   below zero
    0               0            ordinary
    up to 1/3       1..9         raised
    1/3 to 2/3      10..99       high
    2/3 to 1        100..1,000   urgent

Within a level the priority orders the URLs of a host, and those in Redis.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_DECADES = 3  # of priorities, for scores from 0 to 1


def priority_of(score: float) -> int:
    """Return the priority of a score from -1 to 1; values beyond count as -1 or 1.

    Raises:
        ValueError: it is NaN.
    """
    if math.isnan(score):
        raise ValueError("a score is not a number: it must be from -1 to 1")
    if not score:
        return 0
    size = int(10 ** (_DECADES * min(abs(score), 1.0)))
    return size if score > 0 else -size


def priorities_of(scores: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the priorities of n scores, int64, shape (n,).

    Raises:
        ValueError: a score is NaN.
    """
    given = np.asarray(scores, dtype=np.float64)
    if np.isnan(given).any():
        raise ValueError("a score is not a number: it must be from -1 to 1")
    sizes = (10 ** (_DECADES * np.minimum(np.abs(given), 1.0))).astype(np.int64)
    return np.sign(given).astype(np.int64) * sizes
