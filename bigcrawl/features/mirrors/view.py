from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.features.mirrors.settings import MirrorConfig
from bigcrawl.features.mirrors.verdicts import MirrorVerdict, mirror_verdict_text
from bigcrawl.views.feature import FeatureView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bigcrawl.config import Config
    from bigcrawl.views.feature import ExplainedUrl


class _MirrorView(FeatureView):
    name = "mirrors"
    row = "mirror"

    def status(self, counts: Mapping[str, int], reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        return {"mirrors": counts["mirrors"]}

    def status_lines(self, status: Mapping[str, Any]) -> list[str]:
        mirrors = status["mirrors"]
        text = f"mirrors     {mirrors:,} PLDs have lower budgets for it: see scrapy frontier budget PLD"
        return [text] if mirrors else []

    def explained(self, asked: ExplainedUrl) -> dict[str, Any]:
        said: MirrorVerdict | None = asked.said
        if said is None or not asked.config.feature_config(MirrorConfig).share:
            return {"mirror": None}
        divisor = self.divisor(said, asked.config)
        return {"mirror": {**said._asdict(), "other": f"{said.other:016x}", "budget_divided_by": divisor}}

    def explained_rows(self, data: Mapping[str, Any]) -> dict[str, str]:
        mirror = data["mirror"]
        if not mirror or not mirror["shared"]:
            return {}
        verdict = MirrorVerdict(mirror["is_mirror"], mirror["shared"], mirror["weighed"], int(mirror["other"], 16))
        divided = f" and has its budget divided by {mirror['budget_divided_by']}" if verdict.is_mirror else ""
        is_one = "taken" if verdict.is_mirror else "not taken"
        return {"mirror": f"its PLD is {is_one} for one{divided}: {mirror_verdict_text(verdict)}"}

    def divisor(self, said: MirrorVerdict | None, config: Config) -> int:
        mirrors = config.feature_config(MirrorConfig)
        return mirrors.divisor if said is not None and said.is_mirror and mirrors.share else 1

    def why_divided(self, said: MirrorVerdict | None) -> str:
        return "" if said is None else mirror_verdict_text(said)


VIEW: Final = _MirrorView()
