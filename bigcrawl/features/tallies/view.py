"""Outgoing traffic of the crawl's nodes, in `status`.

Source: PolyBot §4.2 (bytes and frames out; frames are not counted here, because only the system knows them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.views.feature import FeatureView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class _OutgoingView(FeatureView):
    name = "tallies"

    def status(self, counts: Mapping[str, int], reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        known = list(reports)
        sent_bytes, look_ups = (sum(report.get(name, 0) for report in known) for name in ("sent_bytes_s", "look_ups_s"))
        return {"outgoing": {"bytes_per_s": sent_bytes, "look_ups_per_s": round(look_ups, 2)}}

    def status_lines(self, status: Mapping[str, Any]) -> list[str]:
        found = status["outgoing"]
        text = (
            f"outgoing    {found['bytes_per_s'] / 1000:,.1f} KB/s of requests, {found['look_ups_per_s']:,g} look-ups/s"
        )
        return [text] if any(found.values()) else []


VIEW: Final = _OutgoingView()
