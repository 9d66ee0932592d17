"""The page: written at most twice a second, and never an exception for Scrapy's loop."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from bigcrawl.metrics.text import KEPT_S, MetricsPage

if TYPE_CHECKING:
    import pytest


def request(accept: str = "") -> Any:
    from twisted.web.test.requesthelper import DummyRequest  # which installs a reactor

    made: Any = DummyRequest([b"metrics"])
    made.getHeader = {"accept": accept}.get
    return made


def test_a_scraper_in_a_hurry_costs_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within half a second the same text is given again, unless another format is asked for."""
    now, written = [100.0], []

    def write(accept: str) -> tuple[bytes, str]:
        written.append(accept)
        return b"%d" % len(written), "text/plain"

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    page = MetricsPage(write)
    assert [page.render_GET(request()) for _ in range(5)] == [b"1"] * 5
    assert page.render_GET(request("openmetrics")) == b"2"
    now[0] += KEPT_S
    assert page.render_GET(request("openmetrics")) == b"3"
    assert written == ["", "openmetrics", "openmetrics"]


def test_an_error_is_status_500_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Each scrape fails, the crawl does not."""

    def write(accept: str) -> tuple[bytes, str]:
        raise ValueError("broken")

    page = MetricsPage(write)
    for _ in range(3):
        asked = request()
        assert page.render_GET(asked) == b""
        assert asked.responseCode == 500
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
