"""spidermon: its monitors of a closed spider, and validated items."""

from __future__ import annotations

from spidermon.contrib.scrapy.monitors import SpiderCloseMonitorSuite
from spidermon.core.actions import Action

from tests.plugins.base import PluginSpider

SETTINGS = {
    "EXTENSIONS": {"spidermon.contrib.scrapy.extensions.Spidermon": 500},
    "ITEM_PIPELINES": {"spidermon.contrib.scrapy.pipelines.ItemValidationPipeline": 800},
    "SPIDERMON_ENABLED": True,
    "SPIDERMON_SPIDER_CLOSE_MONITORS": ("tests.plugins.projects.monitors.CloseSuite",),
    "SPIDERMON_VALIDATION_SCHEMAS": [
        {"type": "object", "required": ["url", "status"], "properties": {"status": {"type": "integer"}}}
    ],
    "SPIDERMON_MIN_ITEMS": 4,
    "SPIDERMON_MAX_ITEM_VALIDATION_ERRORS": 0,
    "SPIDERMON_MAX_ERRORS": 0,
    "SPIDERMON_MAX_WARNINGS": 0,
    "SPIDERMON_MAX_RETRIES": 0,
    "SPIDERMON_MAX_DOWNLOADER_EXCEPTIONS": 0,
    "SPIDERMON_UNWANTED_HTTP_CODES": {503: 1},
    "SPIDERMON_MIN_SUCCESSFUL_REQUESTS": 3,
    "SPIDERMON_ADD_FIELD_COVERAGE": True,
    "SPIDERMON_FIELD_COVERAGE_RULES": {"dict/status": 1.0},
}


class Verdicts(Action):
    """Notes in the stats how each monitor has ended, and why."""

    def run_action(self):
        ended = {
            str(result.monitor.name): [result.status, result.reason or ""] for result in self.result.monitor_results
        }
        self.data.crawler.stats.set_value("verdicts", ended)


class CloseSuite(SpiderCloseMonitorSuite):
    monitors_finished_actions = [Verdicts]  # noqa: RUF012 - spidermon's own way


class Spider(PluginSpider):
    async def start(self):
        async for request in super().start():
            # Scrapy tries robots.txt of a closed port, too, and counts that.
            if not request.url.startswith(self.refusing):
                yield request
