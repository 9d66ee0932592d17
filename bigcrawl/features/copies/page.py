from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.features.copies.rows import SEEN, pack_seen
from bigcrawl.features.copies.settings import CopyConfig
from bigcrawl.scheduler.handout.observers import Observer
from bigcrawl.scheduler.records.observed import ObservedRows

if TYPE_CHECKING:
    from bigcrawl.scheduler.handout.observers import NodeSide, SeenPage


def observer_of(side: NodeSide) -> Observer | None:
    seen = side.config.feature_config(CopyConfig).seen
    if seen == "near":
        from bigcrawl.content import near_copies  # noqa: F401 - steps call it later
        from bigcrawl.features.copies.near_page import NearContents

        return NearContents(side.partitions)
    return None if seen == "off" else PageContents(side.partitions)


class PageContents(Observer):
    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    def __repr__(self) -> str:
        return f"<PageContents partitions={self._partitions}>"

    def rows_of(self, page: SeenPage) -> tuple[ObservedRows, ...]:
        content, key = page.content, page.held.fields.key
        return (ObservedRows(content % self._partitions, pack_seen(content, key), SEEN),)
