"""What a row of the table is: a spider, its settings, and what may differ from stock Scrapy, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ANYTHING = "anything"
"""In `ours`: the place is not compared."""


@dataclass(frozen=True, slots=True)
class Case:
    """A spider that is run once on each side.

    Args:
        spider: a name in `spiders`.
        settings: of the project, on both sides.
        ours: what bigcrawl does otherwise on purpose: `items`, `signals`, `stats` or `reason`, and what it is with
            bigcrawl, or ANYTHING.
        why: the reason; not empty where `ours` is not.
    """

    spider: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    ours: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.spider
