"""Writes metrics in OpenMetrics or Prometheus's format, for a page. Only this module imports `prometheus_client`."""

from __future__ import annotations

import logging
import time
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from twisted.web.resource import Resource

from bigcrawl.histogram import BOUNDS_S, Histogram
from bigcrawl.metrics.table import METRICS, SHOWN_ENDS
from bigcrawl.serving.sites import QuietSite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from twisted.web.server import Request

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


logger = logging.getLogger(__name__)

KEPT_S: Final = 0.5  # requests within this time get the same text, which bounds their cost


class MetricsPage(Resource):
    """The page /metrics; `write` returns text and content type for an Accept header. Its first error is logged."""

    isLeaf = True  # noqa: N815 - Twisted's name

    def __init__(self, write: Callable[[str], tuple[bytes, str]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._write = write
        self._kept: tuple[float, str, tuple[bytes, str]] = (0.0, "", (b"", ""))  # expiry, Accept header, page
        self._has_failed = False

    def render_GET(self, request: Request) -> bytes:  # noqa: N802 - Twisted's name
        try:
            text, content_type = self._cached_text(request.getHeader("accept") or "")
        except Exception:
            if not self._has_failed:
                logger.exception("the metrics could not be written; this is logged once")
            self._has_failed = True
            request.setResponseCode(500)
            return b""
        request.setHeader("content-type", content_type)  # type: ignore[no-untyped-call]
        return text

    def _cached_text(self, accept: str) -> tuple[bytes, str]:
        until, accepted, written = self._kept
        now = time.monotonic()
        if now >= until or accepted != accept:
            written = self._write(accept)
            self._kept = (now + KEPT_S, accept, written)
        return written


def metrics_site(write: Callable[[str], tuple[bytes, str]]) -> QuietSite:
    root = Resource()  # type: ignore[no-untyped-call]
    root.putChild(b"metrics", MetricsPage(write))  # type: ignore[arg-type]  # zope's interfaces are not known to mypy
    return QuietSite(root)
