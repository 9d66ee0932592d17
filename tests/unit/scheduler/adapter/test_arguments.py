"""Which arguments of a spider must stay as they were."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scrapy import Spider

from bigcrawl.scheduler.adapter.arguments import fixed_arguments
from bigcrawl.scheduler.crawl.alike import changed, has_others
from bigcrawl.spiders.focused import FocusedSpider
from bigcrawl.spiders.sample import SampleSpider

if TYPE_CHECKING:
    from collections.abc import Collection


class Base(Spider):
    changeable_arguments: Collection[str] = ("limit",)


class Derived(Base):
    changeable_arguments = "until"


def test_arguments_that_may_change_are_those_of_all_bases_and_of_scrapyd() -> None:
    given = {"limit": "3", "until": "x", "tag": "a", "_job": "1", "start_urls": ["http://a/"], "allowed_domains": "a"}
    assert fixed_arguments(Derived, (), given) == {"tag": "a"}
    assert fixed_arguments(SampleSpider, (), {"seeds": "a", "walks": 3, "seed": 1}) == {"seed": "1"}
    assert fixed_arguments(FocusedSpider, (), {"threshold": 1, "topic": "bees"}) == {"topic": "bees"}


def test_secrets_may_change_and_are_kept_nowhere() -> None:
    """One is renewed in the middle of a long crawl; Redis, logs and reports are read by others."""
    given = dict.fromkeys(("password", "API_TOKEN", "apikey", "client_secret", "keyword", "author"), "a")
    assert fixed_arguments(Spider, (), given) == {"author": "a", "keyword": "a"}


@pytest.mark.parametrize(
    ("value", "text"),
    [("5", "5"), (5, "5"), (None, "null"), ([1, "a"], '[1, "a"]'), (Path("/a"), '"/a"'), ({"b", "a"}, '["a", "b"]')],
)
def test_values_are_compared_as_text(value: object, text: str) -> None:
    """Those of a command line and of a script are the same; an object is its class."""
    assert fixed_arguments(Spider, (value,), {"x": value}) == {"1": text, "x": text}
    assert fixed_arguments(Spider, (), {"x": object(), "f": len}) == {"f": '"builtins.len"', "x": '"builtins.object"'}
    assert fixed_arguments(Spider, (), {"x": "long" * 50})["x"].startswith("sha256:")


def test_starts_differ_only_where_both_are_known() -> None:
    assert not has_others(None, {"a": "1"})
    assert not has_others({"a": "1"}, {"a": "1"})
    assert has_others({}, {"a": "1"})
    assert changed({}, {"a": "1"}) == "the spider's argument a is not given here and '1'"
