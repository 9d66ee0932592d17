"""The settings of copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.table_rows import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS: Final[tuple[Setting | str, ...]] = (
    "Copies of pages",
    Setting(
        "BIGCRAWL_CONTENT_SEEN",
        "exact",
        str,
        "Which copies of pages the crawl knows, over all nodes and runs: none, pages with the body of another, or also "
        "those with nearly its text. They are counted and listed, and fetched and stored like others. See "
        "docs/copies.md.",
        choices=("off", "exact", "near"),
        alike=True,
    ),
)


@dataclass(frozen=True, slots=True)
class CopyConfig:
    """Which copies the crawl looks for: `off`, `exact` or `near`."""

    seen: str


def read(value: Mapping[str, Any]) -> CopyConfig:
    return CopyConfig(value["BIGCRAWL_CONTENT_SEEN"])
