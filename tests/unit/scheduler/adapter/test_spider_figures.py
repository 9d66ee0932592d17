"""What a spider counts, as its node and the status read it: bounded, and no spider's fault stops a heartbeat."""

from __future__ import annotations

from typing import Any

import pytest
import scrapy
from scrapy.utils.test import get_crawler

from bigcrawl.scheduler.adapter.scrapy_engine import FIGURES_MAX, ScrapyEngine
from bigcrawl.scheduler.crawl.node_reports import read_or_nothing
from bigcrawl.views.status import _figures_of


def engine_of(figures: Any) -> ScrapyEngine:
    """The engine of a spider with these figures, or without any."""
    crawler = get_crawler(scrapy.Spider)
    crawler.spider = scrapy.Spider("counting")
    if figures is not None:
        crawler.spider.crawl_figures = figures  # type: ignore[attr-defined]
    rest: Any = None
    return ScrapyEngine(crawler, rest, rest, rest, rest, rest)


def test_figures_are_a_dict_or_what_a_method_returns() -> None:
    assert engine_of(None).figures() == {}
    assert engine_of({"a": 1, "b": [1, 2]}).figures() == {"a": 1, "b": [1, 2]}
    assert engine_of(lambda: {"a": 1}).figures() == {"a": 1}
    assert engine_of([1]).figures() == {}
    assert len(engine_of({str(number): number for number in range(100)}).figures()) == FIGURES_MAX


@pytest.mark.parametrize("wrong", [lambda: 1 / 0, {"a": object()}, {1: {2}}])
def test_failing_figures_are_logged_once(wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    engine = engine_of(wrong)
    assert engine.figures() == engine.figures() == {}
    assert [record.getMessage() for record in caplog.records] == [
        "the spider's crawl_figures failed, and is not asked for again"
    ]


def test_figures_of_nodes_are_summed_where_they_are_alike() -> None:
    """Damaged ones, and those of another shape, are left out."""
    reports = [
        {"figures": {"pages": [2, 5], "walks": 3}},
        {"figures": {"pages": [1, 5], "walks": 4}},
        {"figures": {"pages": 7, "walks": "many", "odd": [1, 2, 3], "none": []}},
        {},
    ]
    assert _figures_of(reports) == {"pages": [3, 10], "walks": [7]}
    assert read_or_nothing('{"figures": [1]}') == {}
    assert read_or_nothing('{"figures": {"a": 1}}') == {"figures": {"a": 1}}
