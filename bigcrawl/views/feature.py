from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.feature_list import modules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bigcrawl.config import Config
    from bigcrawl.scheduler.partition.reader import UrlOnDisk
    from bigcrawl.scheduler.records.queued_url import QueuedUrl


class UrlRecord(NamedTuple):
    body: bytes
    flags: int
    for_time: bool = False


class ExplainedUrl(NamedTuple):
    url: str
    said: Any
    config: Config
    now_ms: int
    record: UrlRecord | None


class FeatureView:
    """What one feature adds to the views; by default nothing.

    `said` is the result of the feature's `Feature.look_up` or `look_up_plds`; None if it knows nothing, or the files
    are not here.

    Attributes:
        row: heading of the feature's verdict on a PLD, if any.
        wants_record: whether explaining a URL needs its record, for which all queues may be read.
    """

    name = ""
    row = ""
    wants_record = False

    def reads_queues(self, config: Config) -> bool:
        """Return whether finding records needs the queues' files, which must then be fetched from the store."""
        return False

    def status(self, counts: Mapping[str, int], reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        return {}

    def status_lines(self, status: Mapping[str, Any]) -> list[str]:
        return []

    def explained(self, asked: ExplainedUrl) -> dict[str, Any]:
        return {}

    def explained_rows(self, data: Mapping[str, Any]) -> dict[str, str]:
        return {}

    def divisor(self, said: Any, config: Config) -> int:
        return 1

    def why_divided(self, said: Any) -> str:
        return ""

    def change_of(self, url: QueuedUrl, since_s: int) -> dict[str, Any] | None:
        return None


def all_views() -> tuple[FeatureView, ...]:
    return tuple(module.VIEW for module in modules_of("view"))


def changes_of(url: QueuedUrl, since_s: int) -> list[dict[str, Any]]:
    found = (change_of(url, since_s) for change_of in _change_readers())
    return [line for line in found if line is not None]


@cache
def _change_readers() -> tuple[Callable[[QueuedUrl, int], dict[str, Any] | None], ...]:
    return tuple(view.change_of for view in all_views() if type(view).change_of is not FeatureView.change_of)


def lowered_budget(disk: UrlOnDisk | None, config: Config) -> dict[str, str | None]:
    texts: dict[str, str | None] = {}
    for view in all_views():
        if view.row:
            said = disk.said.get(view.name) if disk is not None else None
            divisor = view.divisor(said, config)
            why = f"divided by {divisor}, unless it is set by hand: {view.why_divided(said)}"
            texts[view.row] = why if divisor > 1 else None
    return texts
