from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.features.traps.settings import TrapConfig
from bigcrawl.features.traps.shape import UrlShapes, kinds_of
from bigcrawl.features.traps.verdicts import TrapVerdict, trap_verdict_text
from bigcrawl.views.feature import FeatureView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.config import Config
    from bigcrawl.views.feature import ExplainedUrl


class _TrapView(FeatureView):
    name = "traps"
    row = "trap"

    def explained(self, asked: ExplainedUrl) -> dict[str, Any]:
        said: TrapVerdict | None = asked.said
        traps = asked.config.feature_config(TrapConfig)
        if not traps.share:
            return {"shape": [], "trap": None}
        trap = None if said is None else {**said._asdict(), "budget_divided_by": self.divisor(said, asked.config)}
        return {"shape": kinds_of(UrlShapes(traps).traits(asked.url)), "trap": trap}

    def explained_rows(self, data: Mapping[str, Any]) -> dict[str, str]:
        shape, trap = data["shape"], data["trap"]
        if not shape and not trap:
            return {}
        itself = f"it looks like one's itself: {', '.join(shape)}; " if shape else ""
        if trap is None or not (trap["urls"] or trap["is_caught"]):
            return {"trap": f"{itself}its PLD is not taken for one"}
        why = trap_verdict_text(TrapVerdict(**{name: trap[name] for name in TrapVerdict._fields}))
        if not trap["is_caught"]:
            return {"trap": f"{itself}its PLD is not taken for one: {why}"}
        divided = f"its budget divided by {trap['budget_divided_by']}: {why}"
        return {"trap": f"{itself}its PLD is taken for one and has {divided}"}

    def divisor(self, said: TrapVerdict | None, config: Config) -> int:
        traps = config.feature_config(TrapConfig)
        return traps.divisor if said is not None and said.is_caught and traps.share else 1

    def why_divided(self, said: TrapVerdict | None) -> str:
        return "" if said is None else trap_verdict_text(said)


VIEW: Final = _TrapView()
