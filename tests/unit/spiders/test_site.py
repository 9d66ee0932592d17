"""The site spider: its bounds are rules, and its scope is the hosts of its seeds."""

from __future__ import annotations

import pytest
from scrapy.crawler import Crawler

from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.rules.budget_rules import parse_rules
from bigcrawl.spiders.site import SiteSpider


def test_bounds_are_a_rule_for_every_host() -> None:
    """Beside the rules of the settings; without bounds those alone."""
    crawler = Crawler(SiteSpider, {"BIGCRAWL_BUDGET_RULES": '{"a.example": {"pages": 1}}'})
    SiteSpider.from_crawler(crawler, seeds="http://a.example/", pages="500", depth=4)
    config = read_config(crawler.settings)
    assert parse_rules(config.budget.rules) == {"a.example": {"pages": 1}, "*": {"pages": 500, "depth": 4}}
    crawler = Crawler(SiteSpider, {"BIGCRAWL_BUDGET_RULES": {"*": {"bytes": 1_000, "depth": 8}}})
    SiteSpider.from_crawler(crawler, seeds="http://a.example/", depth=4)
    assert read_config(crawler.settings).budget.rules == {"*": {"bytes": 1_000, "depth": 4}}
    crawler = Crawler(SiteSpider)
    SiteSpider.from_crawler(crawler, seeds="http://a.example/")
    assert read_config(crawler.settings).budget.rules == {}


def test_scope_is_the_hosts_of_the_seeds_unless_told_otherwise() -> None:
    """By an argument, which goes before the spider's own settings."""
    crawler = Crawler(SiteSpider)
    SiteSpider.from_crawler(crawler, seeds="http://a.example/")
    config = read_config(crawler.settings)
    assert (config.filters.scope, config.budget.policy) == ("host", "none")
    SiteSpider.from_crawler(crawler, seeds="http://a.example/", scope="pld")
    assert read_config(crawler.settings).filters.scope == "pld"


def test_bound_that_is_no_number_is_told_by_the_check_of_rules() -> None:
    """In one line, with what it should be."""
    crawler = Crawler(SiteSpider)
    SiteSpider.from_crawler(crawler, seeds="http://a.example/", pages="many")
    with pytest.raises(ConfigError, match=r"\['\*'\]: pages is 'many'; must be a whole number"):
        parse_rules(read_config(crawler.settings).budget.rules)
