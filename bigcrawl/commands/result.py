"""The result of a `scrapy frontier` action, printed as text or as JSON."""

from __future__ import annotations

from typing import Any, NamedTuple


class Result(NamedTuple):
    """What an action returns.

    Attributes:
        data: the result for programs, JSON-serialisable.
        text: the same result for a person.
        status: exit status.
    """

    data: dict[str, Any]
    text: str
    status: int = 0
