"""The dashboard and the alert rules in ops/: every metric, label and value that they name exists, and is explained."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bigcrawl.metrics.table import METRICS, SHOWN_ENDS

if TYPE_CHECKING:
    from bigcrawl.metrics.outcomes import Metric

PROJECT = Path(__file__).resolve().parents[3]
DASHBOARD = PROJECT / "ops" / "grafana" / "bigcrawl.json"
RULES = PROJECT / "ops" / "prometheus" / "bigcrawl.rules.yml"
NAME = re.compile(r"\bbigcrawl_\w+")
MATCHERS = re.compile(r"\b(bigcrawl_\w+)\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)\s*(?:=~|=|!=|!~)\s*"([^"]*)"')
ALL_HAVE = {"crawl", "instance", "job"}


def shown_names() -> dict[str, Metric]:
    """Each name that a scrape shows, with its metric."""
    names = {}
    for metric in METRICS:
        ends = ("_bucket", "_count", "_sum") if metric.kind == "histogram" else (SHOWN_ENDS.get(metric.kind, ""),)
        names.update({metric.name + end: metric for end in ends})
    return names


def expressions() -> list[str]:
    """Every expression of the dashboard."""
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    shown = [
        *dashboard["annotations"]["list"],
        *(row for panel in dashboard["panels"] for row in panel.get("targets", ())),
    ]
    return [row["expr"] for row in shown]


@pytest.mark.parametrize("path", [DASHBOARD, RULES], ids=lambda path: path.name)
def test_every_metric_they_name_exists(path: Path) -> None:
    """Under the name that a scrape shows, with the ending of its kind."""
    text = path.read_text("utf-8").replace('\\"', '"')
    named = set(NAME.findall(text))
    assert len(named) > 10
    assert named <= shown_names().keys()


@pytest.mark.parametrize("path", [DASHBOARD, RULES], ids=lambda path: path.name)
def test_every_label_and_value_they_name_exists(path: Path) -> None:
    """A misspelt value would match nothing, and an alert never fire."""
    text = path.read_text("utf-8").replace('\\"', '"')
    for name, matchers in MATCHERS.findall(text):
        metric = shown_names()[name]
        for label, pattern in MATCHER.findall(matchers):
            assert label in ALL_HAVE | {metric.label}, (name, label)
            if label == metric.label:
                assert set(pattern.split("|")) <= set(metric.values), (name, pattern)


def test_labels_to_sum_by_exist() -> None:
    """In each expression of the dashboard, of the metrics in it."""
    for text in expressions():
        labels = {label for group in re.findall(r"\bby \(([^)]*)\)", text) for label in group.split(", ")}
        known = {shown_names()[name].label for name in NAME.findall(text)} | ALL_HAVE | {"le"}
        assert labels <= known, text


def test_every_metric_is_on_the_dashboard() -> None:
    """Or, for what says something about a node only, in a rule or a variable."""
    text = DASHBOARD.read_text("utf-8") + RULES.read_text("utf-8")
    named = {shown_names()[name].name for name in NAME.findall(text)}
    assert {metric.name for metric in METRICS} - named == {
        "bigcrawl_owned_duplicate_urls",
        "bigcrawl_owned_body_bytes",
        "bigcrawl_warc_records",
        "bigcrawl_warc_indexed_files",
        "bigcrawl_warc_uploaded_files",
    }


def test_panels_lie_beside_each_other() -> None:
    """No two on the same place; each has an id, a title and a unit of its own."""
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not places & cells, panel["title"]
        assert at["x"] + at["w"] <= 24
        places |= cells


def test_every_alert_says_what_to_do() -> None:
    """docs/operations.md has a row for each, and for no other."""
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text("utf-8"))
    rows = re.findall(r"^\| (Bigcrawl\w+) \|", (PROJECT / "docs" / "operations.md").read_text("utf-8"), re.MULTILINE)
    assert alerts == rows
    assert len(set(alerts)) == len(alerts)
