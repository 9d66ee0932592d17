"""Which requests for pages that were visited before have conditions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request

from bigcrawl.middlewares import revisits
from bigcrawl.revisiting.visit import Visit

KNOWN = Visit(1, 100, 100, 100, 200, False, b"digest", b'"a"', b"Mon, 01 Jan 2024 00:00:00 GMT")


@pytest.mark.parametrize(("method", "has_conditions"), [("GET", True), ("HEAD", True), ("POST", False), ("PUT", False)])
def test_only_reads_have_conditions(monkeypatch: pytest.MonkeyPatch, method: str, *, has_conditions: bool) -> None:
    """A form whose answer has not changed would get an error, 412, at each further visit."""
    started = SimpleNamespace(known_visit=lambda request: KNOWN)
    monkeypatch.setattr(revisits, "frontier_of", lambda crawler: SimpleNamespace(started=started))
    crawler: Any = SimpleNamespace(stats=None, signals=None)
    conditions = revisits.Conditions.__new__(revisits.Conditions)
    conditions._crawler = crawler
    request = Request("http://a.example/", method=method)
    conditions.process_request(request)
    assert ("If-None-Match" in request.headers) is has_conditions
    assert ("If-Modified-Since" in request.headers) is has_conditions
