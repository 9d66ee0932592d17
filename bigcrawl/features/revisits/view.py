"""Revisits in `status`, `explain` and the list of changes. A page's record is stored with its URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.clock import length_text, time_text
from bigcrawl.features.revisits.settings import RevisitConfig
from bigcrawl.listings.changefreqs import CHANGEFREQS
from bigcrawl.revisiting.change_rate import change_rate
from bigcrawl.revisiting.rules import NEVER
from bigcrawl.revisiting.visit import Visit, VisitFormatError
from bigcrawl.scheduler.records.body import known_in, look_at_address
from bigcrawl.scheduler.records.queued_url import listed_in
from bigcrawl.views.feature import FeatureView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bigcrawl.config import Config
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.views.feature import ExplainedUrl


class _RevisitView(FeatureView):
    name = "revisits"
    wants_record = True

    def reads_queues(self, config: Config) -> bool:
        return config.feature_config(RevisitConfig).rule != NEVER

    def status(self, counts: Mapping[str, int], reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        known = list(reports)
        late_s = max((report.get("visits_late_s", 0) for report in known), default=0)
        visits, unchanged = (sum(report.get(name, 0) for report in known) for name in ("visits", "visits_unchanged"))
        waiting = {"waiting": counts["revisits"], "overdue": counts["overdue"], "late_s": late_s}
        return {"revisits": {**waiting, "visits": visits, "unchanged": unchanged}}

    def status_lines(self, status: Mapping[str, Any]) -> list[str]:
        found = status["revisits"]
        late = f"; visits come {length_text(found['late_s'], 1)} late" if found["late_s"] else ""
        text = f"revisits    {found['waiting']:,} pages wait for their next visit, {found['overdue']:,} overdue{late}"
        lines = [text] if found["waiting"] else []
        if visits := found.get("visits"):
            lines.append(
                f"fresh       {found['unchanged'] / visits:.0%} of {visits:,} visits found the page as it was kept"
            )
        return lines

    def explained(self, asked: ExplainedUrl) -> dict[str, Any]:
        return {"revisit": _next_visit(asked)}

    def explained_rows(self, data: Mapping[str, Any]) -> dict[str, str]:
        found = data["revisit"]
        if found is None:
            return {}
        if found["due"] is None:
            return {"revisit": "none waits on disk: it has had all visits, or its host is snoozed or retired"}
        return {"visits": _visits_text(found), "revisit": _due_text(found)}

    def change_of(self, url: QueuedUrl, since_s: int) -> dict[str, Any] | None:
        data = known_in(url.body)
        if not data:
            return None
        visit = Visit.unpack(data)
        if visit.changed_s < since_s:
            return None
        is_new = visit.first_s >= since_s and not visit.is_gone
        change = "gone" if visit.is_gone else "added" if is_new else "changed"
        address, _ = look_at_address(url.body)
        digest = visit.digest.hex()
        return {"url": address, "change": change, "time": visit.changed_s, "digest": digest, "visits": visit.number}


def _next_visit(asked: ExplainedUrl) -> dict[str, Any] | None:
    policy, record = asked.config.feature_config(RevisitConfig).rule, asked.record
    if record is None:
        return {"policy": policy, "waits": False, "due": None} if asked.said else None
    try:
        data = known_in(record.body)
        visit = Visit.unpack(data) if data else None
    except (ValueError, VisitFormatError):
        visit = None
    if visit is None:
        return None
    rate = change_rate(visit.history)
    return {
        "policy": policy,
        "waits": record.for_time,
        "due": time_text(visit.due_s * 1000),
        "due_in_s": visit.due_s - asked.now_ms // 1000,
        "soonest": time_text(visit.soonest_s * 1000) if 0 < visit.soonest_s < visit.due_s else None,
        "visits": visit.number,
        "last": time_text(visit.last_s * 1000),
        "changed": time_text(visit.changed_s * 1000),
        "is_gone": visit.is_gone,
        "comparisons": sum(group.made for group in visit.history),
        "changes": sum(group.changes for group in visit.history),
        "changes_every_s": round(1 / rate) if rate else None,
        "changefreq": CHANGEFREQS[listed_in(record.flags)] or None,
    }


def _visits_text(data: Mapping[str, Any]) -> str:
    seen = "was gone by" if data["is_gone"] else "is as it was since"
    text = f"{data['visits']:,} so far; known at {data['last']}, and {seen} {data['changed']}"
    if data["comparisons"]:
        text += f"; {data['changes']} of the last {data['comparisons']} found a change"
    if data["changes_every_s"]:
        text += f", so it changes once in {length_text(data['changes_every_s'], 1)}"
    return text + (f"; its site says {data['changefreq']}" if data["changefreq"] else "")


def _due_text(data: Mapping[str, Any]) -> str:
    policy = "BIGCRAWL_REVISIT is never here" if data["policy"] == NEVER else f"by the policy {data['policy']}"
    left_s = data["due_in_s"]
    when = f"in {length_text(left_s, 1)}" if left_s >= 0 else f"{length_text(-left_s, 1)} ago"
    text = f"due {data['due']}, {when}, {policy}"
    if not data["waits"]:
        return f"{text}; its time has come, and it waits with other URLs"
    if data["soonest"]:
        text += f"; from {data['soonest']} on if its site says that it has changed"
    return text


VIEW: Final = _RevisitView()
