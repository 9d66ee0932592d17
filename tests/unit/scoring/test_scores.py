"""Scores and the priorities that follow from them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bigcrawl.scheduler.queues.front_queues import level_of
from bigcrawl.scoring.scores import priorities_of, priority_of

SCORES = [-7.0, -1.0, -0.5, -1e-9, 0.0, 1e-9, 0.2, 1 / 3, 0.5, 2 / 3, 0.9, 1.0, 7.0]
LEVELS = [0, 0, 0, 0, 1, 2, 2, 3, 3, 4, 4, 4, 4]


def test_thirds_of_a_score_are_levels() -> None:
    """Below zero, ordinary, and three thirds above; a score beyond 1 is 1."""
    assert [level_of(priority_of(score)) for score in SCORES] == LEVELS
    assert (priority_of(1), priority_of(7), priority_of(-1)) == (1000, 1000, -1000)


def test_a_higher_score_never_has_a_lower_priority() -> None:
    """Over the whole scale, and one by one as in a batch."""
    scores = np.linspace(-1.2, 1.2, 1_001)
    priorities = priorities_of(scores)
    assert (np.diff(priorities) >= 0).all()
    assert priorities.tolist() == [priority_of(score) for score in scores.tolist()]


def test_what_is_no_number_is_refused() -> None:
    """It would be some priority otherwise."""
    for score in (math.nan, float("nan")):
        with pytest.raises(ValueError, match="must be from -1 to 1"):
            priority_of(score)
    with pytest.raises(ValueError, match="must be from -1 to 1"):
        priorities_of([0.5, math.nan])
