"""What the requests of a correct crawler for one URL look like in the server's log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Expected:
    """The known answer for one URL.

    Attributes:
        statuses: any of these is right.
        required: whether a correct crawler must request it. Not if only something uncertain leads there, such as a page
            that cannot be received whole, or if the host may be unreachable.
        retriable: whether it may be requested again: 429, 5xx, and answers that could not be received whole.
        whole: whether an answer can be received whole.
        endless: whether it lies in an infinite space, of which any number of pages may be fetched, or none.
    """

    statuses: frozenset[int]
    required: bool = True
    retriable: bool = False
    whole: bool = True
    endless: bool = False
