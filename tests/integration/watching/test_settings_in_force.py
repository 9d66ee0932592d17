"""Who shows a crawl goes by the settings of its nodes, not by those of the project around it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tests.integration.test_items import SETTINGS
from tests.support.crawling.plain_project import REPOSITORY, SPIDER, Answer, NotedSite, PlainProject
from tests.support.running import warm
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path


class OwnSettings(PlainProject):
    source = SPIDER.replace(
        '    name = "plain"\n',
        '    name = "plain"\n    custom_settings = {"BIGCRAWL_BUDGET_POLICY": "none", "BIGCRAWL_HOST_DELAY": 0.25}\n',
    )

    def asked(self, *words: str) -> Any:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        done = warm.run(["scrapy", "frontier", *words, "--json"], cwd=self.directory, env=environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def test_commands_go_by_the_spiders_own_settings(tmp_path: Path) -> None:
    """While it runs and when it has ended; the report, too."""
    with (
        no_strays_below(tmp_path),
        NotedSite({"/robots.txt": Answer(404)}) as site,
        OwnSettings(tmp_path / "project", **SETTINGS, BIGCRAWL_STATE_DIR=str(tmp_path / "state")) as project,
    ):
        urls = [site.url("127.0.0.2", path) for path in ("/a", "/b", "/c")]
        site.hold_after(1)
        project.start(*urls)
        wait_until(lambda: len(site.paths()) > 1, "it fetches pages")
        [node] = project.asked("nodes")["nodes"]
        assert node["settings"]["BIGCRAWL_BUDGET_POLICY"] == "none"
        site.settle()
        assert project.wait() == 0
        assert project.asked("budget", "127.0.0.2")["policy"] == "none"
        assert project.asked("delay", "127.0.0.2")["delay"] == 0.25
        report = json.dumps(project.asked("report", str(tmp_path / "report")))
        assert '["budgets", "none"]' in report
