from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bigcrawl.histogram import Histogram
    from bigcrawl.metrics.source import MetricsSource


@dataclass(frozen=True, slots=True)
class Metric:
    """One row; `name` is without the `_total` of counters.

    `read` returns the number, or if there is a label, a number for each of its values. Missing `values` are 0, or left
    out if `is_optional`. `source` is the module below `bigcrawl/` that has the number.
    """

    name: str
    kind: str
    help: str
    source: str
    read: Callable[[MetricsSource], float | Mapping[str, float] | Histogram]
    label: str = ""
    values: tuple[str, ...] = ()
    is_optional: bool = False
