from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.views.feature import FeatureView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class _CopiesView(FeatureView):
    name = "copies"

    def status(self, counts: Mapping[str, int], reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        return {"copies": {"exact": counts["exact_copies"], "near": counts["near_copies"]}}

    def status_lines(self, status: Mapping[str, Any]) -> list[str]:
        copies = status["copies"]
        text = f"copies      {copies['exact']:,} exact, {copies['near']:,} near: see scrapy frontier copies"
        return [text] if any(copies.values()) else []


VIEW: Final = _CopiesView()
