"""What a right crawler's requests for one URL look like in the server's log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Expected:
    """One URL's part of the known answer.

    Attributes:
        statuses: any of these is right.
        required: whether a right crawler must ask for it; not when only something undecided leads there, such as
            a page that cannot be received whole, or when the host may be away.
        retriable: whether it may be asked for again: 429, 5xx, and what could not be received whole.
        whole: whether an answer can be received whole.
        endless: whether it lies in a space without end, of which any number of pages may be fetched or none.
    """

    statuses: frozenset[int]
    required: bool = True
    retriable: bool = False
    whole: bool = True
    endless: bool = False
