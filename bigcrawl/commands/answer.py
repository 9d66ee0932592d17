"""What an action of `scrapy frontier` gives back, to be printed for a person or for a program."""

from __future__ import annotations

from typing import Any, NamedTuple


class Answer(NamedTuple):
    """An answer.

    Attributes:
        data: for programs, what JSON can hold.
        text: the same for a person.
        status: exit status.
    """

    data: dict[str, Any]
    text: str
    status: int = 0
