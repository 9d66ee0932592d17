"""The table of metrics: names and units of OpenMetrics, and labels whose values nobody outside decides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bigcrawl.metrics.table import METRICS
from tests.support.running.tables import each

if TYPE_CHECKING:
    from bigcrawl.metrics.outcomes import Metric

SERIES_MAX = 400
PACKAGE_SOURCE = re.compile(r"(stats\.py: bigcrawl/\S+|[a-z_/]+\.(py|lua))(, [a-z_/]+\.(py|lua))*")


@each("metric", METRICS, ids=lambda metric: metric.name)
def test_names_and_units_are_those_of_openmetrics(metric: Metric) -> None:
    """Base units at the end of the name, no suffix that the text format adds, a help that is a sentence."""
    assert re.fullmatch(r"bigcrawl(_[a-z]+)+", metric.name)
    assert not metric.name.endswith(("_total", "_info", "_count", "_sum", "_bucket", "_created"))
    assert not re.search(r"_(ms|milliseconds|kb|mb|percent)$", metric.name)
    assert metric.kind in {"counter", "gauge", "histogram", "info"}
    assert metric.kind != "histogram" or (metric.name.endswith("_seconds") and not metric.label)
    assert metric.help.endswith(".")
    assert PACKAGE_SOURCE.fullmatch(metric.source), metric.source


def test_names_are_unique() -> None:
    """One name, one meaning."""
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_a_label_has_a_list_of_values() -> None:
    """Never a host, a URL or a PLD; only the version of the package is a list of one."""
    labelled = [metric for metric in METRICS if metric.label]
    assert [metric.name for metric in labelled if not metric.values] == ["bigcrawl_node"]
    assert not {metric.label for metric in labelled} & {"host", "url", "pld", "authority", "ip", "le", "crawl"}
    assert sum(max(1, len(metric.values)) for metric in METRICS) + 5 * 18 <= SERIES_MAX
