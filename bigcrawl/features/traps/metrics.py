from __future__ import annotations

from typing import Final

from bigcrawl.metrics.outcomes import of_stat

METRICS: Final = (
    of_stat(
        "bigcrawl_trap_urls",
        "Trap-shaped URLs sent to the seen check, by kind; each counts under all its kinds.",
        "bigcrawl/traps/{kind}",
        "kind",
    ),
)
