"""A row of the table of metrics, and counts by outcome with a fixed set of labels: servers cannot add series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bigcrawl.stats import CRAWL_COUNTERS, SCRAPY_STATS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bigcrawl.histogram import Histogram
    from bigcrawl.metrics.source import MetricsSource

OTHER: Final = "other"
STATUS_CLASSES: Final = ("1xx", "2xx", "3xx", "4xx", "5xx", OTHER)


def values_of(key: str) -> tuple[str, ...]:
    [row] = [row for row in (*SCRAPY_STATS, *CRAWL_COUNTERS) if row.key == key]
    return tuple(value for value, _ in row.values)


ERRORS: Final = values_of("error:{kind}")
DROPS: Final = values_of("dropped:{reason}")
OUTCOMES: Final = (*STATUS_CLASSES[:-1], *ERRORS)

RETURNS: Final = ("robots", "heads", "put_off", OTHER)


def status_class(code: str) -> str:
    return f"{code[0]}xx" if len(code) == 3 and code[0] in "12345" else OTHER


def ended_counts(counts: Mapping[str, int], prefix: str, values: tuple[str, ...]) -> dict[str, float]:
    """Return the counts of outcomes with this prefix, by the rest of their names; unknown ones as `other`."""
    found: dict[str, float] = dict.fromkeys(values, 0)
    for counter, count in list(counts.items()):
        if counter.startswith(prefix):
            value = _value_of(counter[len(prefix) :])
            found[value if value in found else OTHER] += count
    return found


def returned_counts(counts: Mapping[str, int]) -> dict[str, float]:
    return {
        "robots": counts.get("robots", 0),
        "heads": counts.get("heads", 0),
        "put_off": counts.get("put_off", 0),
        OTHER: counts.get("", 0),
    }


def by_value(get: Callable[[str], float], key: str) -> dict[str, float]:
    start, end = key.index("{"), key.index("}") + 1
    return {value: get(key[:start] + value + key[end:]) for value in values_of(key)}


def _value_of(outcome: str) -> str:
    """Return `4xx` for `status:404` and `404`; `timeout` for `error:timeout` and `timeout`."""
    kind, _, detail = outcome.rpartition(":")
    return status_class(detail) if kind == "status" or detail[:1].isdigit() else detail


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


def of_stat(name: str, meaning: str, key: str, label: str = "") -> Metric:
    """Return the metric of a counter of Scrapy's stats; `label` takes the values of the key's placeholder."""
    source = f"stats.py: {key}"
    if label:
        return Metric(name, "counter", meaning, source, lambda s: by_value(s.stat_value, key), label, values_of(key))
    return Metric(name, "counter", meaning, source, lambda s: s.stat_value(key))
