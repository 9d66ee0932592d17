from __future__ import annotations

from typing import Final

from bigcrawl.metrics.metric import Metric
from bigcrawl.metrics.outcomes import by_value, values_of

METRICS: Final = (
    Metric(
        "bigcrawl_trap_urls",
        "counter",
        "Trap-shaped URLs sent to the seen check, by kind; each counts under all its kinds.",
        "stats.py: bigcrawl/traps/{kind}",
        lambda source: by_value(source.stat_value, "bigcrawl/traps/{kind}"),
        "kind",
        values_of("bigcrawl/traps/{kind}"),
    ),
)
