"""What is said of languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.views.feature import FeatureView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class _LanguageView(FeatureView):
    name = "languages"

    def status(self, counts: Mapping[str, int], reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        return {"foreign_pages": counts["foreign_pages"]}


VIEW: Final = _LanguageView()
