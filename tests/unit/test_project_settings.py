"""Scrapy's settings that a project has set: adopted, or said to have no effect in one line that tells what to use."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import ScrapyDeprecationWarning
from scrapy.settings import Settings
from scrapy.settings.default_settings import DUPEFILTER_CLASS

from bigcrawl.addon import Addon
from bigcrawl.default_settings import BY_NAME
from bigcrawl.project_settings import INSTEAD, log_unused_settings
from tests.support.logs import of_bigcrawl
from tests.unit.test_addon import installed

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def with_lines(caplog: pytest.LogCaptureFixture, project: dict[str, Any]) -> tuple[BaseSettings, list[str]]:
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="bigcrawl"):
        settings = installed(project, {"BIGCRAWL_WARC_DIR": ""})
    return settings, [record.getMessage() for record in of_bigcrawl(caplog)]


SET = dict.fromkeys(INSTEAD, "somebody's") | {"CONCURRENT_REQUESTS_PER_DOMAIN": 4, "AUTOTHROTTLE_ENABLED": True}


@pytest.mark.parametrize("name", INSTEAD)
def test_setting_without_effect_is_said_in_one_line(caplog: pytest.LogCaptureFixture, name: str) -> None:
    """It names the setting, and what to use instead."""
    _, lines = with_lines(caplog, {name: SET[name]})
    [line] = [line for line in lines if line.startswith(f"{name} has no effect: ")]
    assert all(word in BY_NAME for word in line.split() if word.startswith("BIGCRAWL_"))


def test_page_of_differences_names_each() -> None:
    """With what to use instead."""
    page = (Path(__file__).parents[2] / "docs" / "differences.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith(("| `", "| slots"))]
    for name, instead in INSTEAD.items():
        [row] = [row for row in rows if f"`{name}`" in row.split("|")[1]]
        own = [word.strip(";:,") for word in instead.split() if word.startswith("BIGCRAWL_")]
        assert name in ("DOWNLOAD_DELAY_JITTER", "RANDOMIZE_DOWNLOAD_DELAY") or all(word in row for word in own), name


def test_nothing_is_said_of_what_nobody_set(caplog: pytest.LogCaptureFixture) -> None:
    """Nor of a value that is Scrapy's own, or does what is done anyhow."""
    assert with_lines(caplog, {})[1] == []
    assert with_lines(caplog, {"DUPEFILTER_CLASS": DUPEFILTER_CLASS, "CONCURRENT_REQUESTS_PER_DOMAIN": 1})[1] == []


@pytest.mark.parametrize(("asked", "kept"), [(0.25, 0.25), (3, 3), ("2", 2)])
def test_download_delay_is_the_hosts(caplog: pytest.LogCaptureFixture, asked: object, kept: float) -> None:
    """As it was set, also when it is less than the default."""
    settings, [line] = with_lines(caplog, {"DOWNLOAD_DELAY": asked})
    assert settings.getfloat("BIGCRAWL_HOST_DELAY") == kept
    assert line.startswith(f"DOWNLOAD_DELAY = {asked} is kept as BIGCRAWL_HOST_DELAY")


def test_delay_of_a_spider_is_the_hosts(caplog: pytest.LogCaptureFixture) -> None:
    """Scrapy reads the attribute, and says what to write instead, only after the add-on; a setting goes before."""

    class Slow(Spider):
        name = "slow"
        download_delay = 7

    for asked, kept, said in (({}, 7, "Use the DOWNLOAD_DELAY setting instead"), ({"DOWNLOAD_DELAY": 3}, 3, "ignored")):
        crawler = Crawler(Slow, {"ADDONS": {Addon: 500}})
        crawler.settings.update(asked, "cmdline")
        crawler.spider = Slow()
        crawler.addons.load_settings(crawler.settings)
        assert crawler.settings.getfloat("BIGCRAWL_HOST_DELAY") == kept
        with pytest.warns(ScrapyDeprecationWarning, match=said):
            crawler._apply_deprecated_spider_attr("download_delay", "DOWNLOAD_DELAY")


def test_no_download_delay_is_no_reason_to_be_rude(caplog: pytest.LogCaptureFixture) -> None:
    """It is Scrapy's default; nor does one count beside a BIGCRAWL_HOST_DELAY."""
    settings, [line] = with_lines(caplog, {"DOWNLOAD_DELAY": 0})
    assert settings.getfloat("BIGCRAWL_HOST_DELAY") == 1
    assert line.startswith("DOWNLOAD_DELAY = 0 has no effect: a host rests 1 s (BIGCRAWL_HOST_DELAY)")
    _, [line] = with_lines(caplog, {"DOWNLOAD_DELAY": 5, "BIGCRAWL_HOST_DELAY": 2})
    assert line.startswith("DOWNLOAD_DELAY = 5 has no effect: a host rests 2 s (BIGCRAWL_HOST_DELAY)")


def test_delays_of_slots_are_delay_rules(caplog: pytest.LogCaptureFixture) -> None:
    """A rule of that name goes before; what else a slot has is said to have no effect."""
    slots = {"a.example.com": {"delay": 2.5}, "b.example.com": {"delay": 3, "concurrency": 4}, "mine": {"delay": 1}}
    rules = {"b.example.com": {"delay": 7}}
    settings, lines = with_lines(caplog, {"DOWNLOAD_SLOTS": slots, "BIGCRAWL_DELAY_RULES": rules})
    assert settings["BIGCRAWL_DELAY_RULES"] == {"a.example.com": {"delay": 2.5}, "b.example.com": {"delay": 7}}
    assert len(lines) == 4
    assert lines[0].startswith("DOWNLOAD_SLOTS['a.example.com']: delay = 2.5 is kept as one of BIGCRAWL_DELAY_RULES")
    assert lines[1].startswith("DOWNLOAD_SLOTS['b.example.com']: delay = 3 has no effect: BIGCRAWL_DELAY_RULES")
    assert lines[2].startswith("DOWNLOAD_SLOTS['b.example.com']: concurrency = 4 has no effect: BIGCRAWL_HOST_CONNEC")
    assert lines[3].startswith("DOWNLOAD_SLOTS['mine'] has no effect: ")
    assert "BIGCRAWL_GROUP " in lines[3]


def test_slot_that_is_none_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """As any other wrong delay: one line, and nothing is fetched."""
    _, [line] = with_lines(caplog, {"DOWNLOAD_SLOTS": {"a.example.com": {"delay": "soon"}}})
    assert "DOWNLOAD_SLOTS['a.example.com']: delay is 'soon'; must be a number" in line


def test_fingerprinter_of_an_addon_is_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    """Nor one that has an effect."""
    name = "REQUEST_FINGERPRINTER_CLASS"
    own = "tests.integration.stock.spiders.ByKind"
    assert with_lines(caplog, {name: own, "BIGCRAWL_FINGERPRINTS": True})[1] == []
    settings = Settings()
    settings.set(name, own, "addon")
    caplog.clear()
    log_unused_settings(settings)
    assert not caplog.records
