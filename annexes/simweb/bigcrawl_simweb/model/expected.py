"""The known answer for one URL."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Expected:
    """The correct result for one URL.

    Attributes:
        statuses: any of these is right.
        required: False if only uncertain links lead there, or if the host may be unreachable.
        retriable: whether it may be requested again: 429, 5xx, and incomplete answers.
        whole: whether a complete answer is possible.
        endless: whether it lies in an infinite space.
    """

    statuses: frozenset[int]
    required: bool = True
    retriable: bool = False
    whole: bool = True
    endless: bool = False
