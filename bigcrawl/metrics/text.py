"""Writes metrics in OpenMetrics or Prometheus's format. Only this module imports `prometheus_client`."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from bigcrawl.histogram import BOUNDS_S, Histogram
from bigcrawl.metrics.table import METRICS, SHOWN_ENDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.metrics.outcomes import Metric
    from bigcrawl.metrics.source import MetricsSource

UNITS: Final = ("seconds", "bytes")


class MetricsText(Collector):
    def __init__(self, source: MetricsSource, crawl: str) -> None:
        self._source = source
        self._crawl = crawl

    def write(self, accept: str) -> tuple[bytes, str]:
        """Return the text of all metrics, and its content type. Cost: 3 ms."""
        encode, content_type = choose_encoder(accept)
        return encode(self), content_type

    def collect(self) -> Iterator[Family]:
        for metric in METRICS:
            yield self._family(metric)

    def _family(self, metric: Metric) -> Family:
        unit = next((unit for unit in UNITS if metric.name.endswith(f"_{unit}")), "")
        family = Family(metric.name, metric.help, metric.kind, unit)
        found = metric.read(self._source)
        name = metric.name + SHOWN_ENDS.get(metric.kind, "")
        if isinstance(found, Histogram):
            self._add_histogram(family, found)
        elif isinstance(found, int | float):
            family.add_sample(name, {"crawl": self._crawl}, found)
        else:
            wanted = found if metric.is_optional or not metric.values else metric.values
            for value in wanted:
                family.add_sample(name, {"crawl": self._crawl, metric.label: value}, found.get(value, 0))
        return family

    def _add_histogram(self, family: Family, found: Histogram) -> None:
        counts = list(accumulate(found.counts))
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), counts, strict=True):
            family.add_sample(f"{family.name}_bucket", {"crawl": self._crawl, "le": bound}, count)
        family.add_sample(f"{family.name}_count", {"crawl": self._crawl}, counts[-1])
        family.add_sample(f"{family.name}_sum", {"crawl": self._crawl}, found.sum_ms / 1000)
