"""Which requests for pages that were visited before have conditions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgpack
import pytest
from scrapy import Request
from scrapy.utils.misc import load_object

from bigcrawl.features.revisits import middlewares
from bigcrawl.features.revisits.page import NextVisits
from bigcrawl.middlewares import revisits
from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds
from bigcrawl.revisiting.rules import PERIODIC
from bigcrawl.revisiting.visit import Visit
from bigcrawl.scheduler.handout.observers import Observers
from bigcrawl.scheduler.records.body import with_known
from bigcrawl.scheduler.records.held_urls import HeldUrls
from tests.support.observing import Sent
from tests.unit.scheduler.records.test_held_urls import held_url

BODY = msgpack.packb(["http://a.example/", 0, None])
KNOWN = Visit(1, 100, 100, 100, 200, False, b"digest", b'"a"', b"Mon, 01 Jan 2024 00:00:00 GMT")


@pytest.mark.parametrize(("method", "has_conditions"), [("GET", True), ("HEAD", True), ("POST", False), ("PUT", False)])
def test_only_reads_have_conditions(monkeypatch: pytest.MonkeyPatch, method: str, *, has_conditions: bool) -> None:
    """A form whose answer has not changed would get an error, 412, at each further visit."""
    held = held_url(1)
    held.fields = held.fields._replace(body=with_known(BODY, KNOWN.pack()))
    visits = NextVisits(RevisitPolicy(PERIODIC, WaitBounds(100, 1, 1_000)), 0, lambda: 0)
    node = SimpleNamespace(observers=Observers(HeldUrls(), Sent(), [visits]))
    frontier = SimpleNamespace(started=SimpleNamespace(held_of=lambda request: held), node=node)
    monkeypatch.setattr(middlewares, "frontier_of", lambda crawler: frontier)
    crawler: Any = SimpleNamespace(stats=None, signals=None)
    conditions = middlewares.Conditions.__new__(middlewares.Conditions)
    conditions._crawler = crawler
    request = Request("http://a.example/", method=method)
    conditions.process_request(request)
    assert ("If-None-Match" in request.headers) is has_conditions
    assert ("If-Modified-Since" in request.headers) is has_conditions


@pytest.mark.parametrize("name", ["Conditions", "Changes", "PageUnchangedError"])
def test_projects_find_them_by_the_path_that_they_know(name: str) -> None:
    """As objects in their code, and as texts in their settings; what is not there is an error as of any module."""
    assert load_object(f"bigcrawl.middlewares.revisits.{name}") is getattr(middlewares, name)
    assert getattr(revisits, name) is getattr(middlewares, name)
    with pytest.raises(AttributeError, match="no attribute 'Missing'"):
        _ = revisits.Missing
