"""Somebody else's Scrapy project: `scrapy startproject`, some spiders, and one line for bigcrawl."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.settings import Settings

from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.status import status_of
from tests.support.running import warm

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

SPIDERS = Path(__file__).with_name("spiders")
REPOSITORY = Path(__file__).parents[3]

# A crawl of a test's own site needs no pauses. The retries of a page take seconds: one is enough.
QUICK = {
    "STATS_DUMP": 1,
    "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": 1,
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_SERVER_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 16,
    "RETRY_TIMES": 1,
    "REDIRECT_MAX_TIMES": 4,
}
# The same project without bigcrawl, as far from its template's pauses.
STOCK = {"ADDONS": "{}", "DOWNLOAD_DELAY": 0, "RETRY_TIMES": 1, "REDIRECT_MAX_TIMES": 4}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one `scrapy crawl` left behind."""

    status: int
    items: list[dict[str, Any]]
    log: str

    @property
    def bag(self) -> list[str]:
        """The items, in an order of their own: as text, sorted."""
        return sorted(json.dumps(item, sort_keys=True) for item in self.items)

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [item for item in self.items if item["kind"] == kind]

    def lines(self, level: str) -> list[str]:
        return [line for line in self.log.splitlines() if f"] {level}: " in line]


class Project:
    """A project named shop in `directory`; its crawls keep their state in the test's Redis."""

    def __init__(self, directory: Path, redis_url: str) -> None:
        self.directory = directory
        self._redis_url = redis_url
        directory.mkdir()
        self.scrapy("startproject", "shop", ".")
        for source in SPIDERS.glob("[a-z]*.py"):
            shutil.copy(source, directory / "shop" / "spiders")
        shutil.copy(SPIDERS.with_name("shop_pipelines.py"), directory / "shop" / "pipelines.py")
        settings = directory / "shop" / "settings.py"
        text = settings.read_text()
        assert "ROBOTSTXT_OBEY = True" in text
        assert "DOWNLOAD_DELAY = 1" in text
        assert "ADDONS = {}" in text
        settings.write_text(text.replace("ADDONS = {}", 'ADDONS = {"bigcrawl.addon.Addon": 500}'))

    def scrapy(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a scrapy command in the project."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
        environment["PYTHONPATH"] = str(REPOSITORY)
        return warm.run(["scrapy", *arguments], cwd=self.directory, env=environment)

    def crawl(
        self,
        spider: str,
        crawl_name: str,
        arguments: Mapping[str, object],
        settings: Mapping[str, object] | None = None,
    ) -> Outcome:
        """Run `scrapy crawl` with the add-on, in the crawl of that name."""
        return self.run(spider, {**QUICK, **self._own(crawl_name), **(settings or {})}, arguments)

    def urls(self, crawl_name: str) -> dict[str, int]:
        """How many URLs of a crawl are in which place."""
        config = read_config(Settings(self._own(crawl_name)))
        with suppress(BigcrawlError):  # no node has joined it
            urls: dict[str, int] = in_crawl(config, status_of)["urls"]
            return urls
        return {"queued": 0}

    def _own(self, crawl_name: str) -> dict[str, Any]:
        return {
            "BIGCRAWL_REDIS_URL": self._redis_url,
            "BIGCRAWL_CRAWL": crawl_name,
            "BIGCRAWL_STATE_DIR": self.directory / "states",
            "BIGCRAWL_WARC_DIR": self.directory / "warc" / crawl_name,
        }

    def crawl_stock(self, spider: str, arguments: Mapping[str, object]) -> Outcome:
        """Run the same on Scrapy's own scheduler."""
        return self.run(spider, STOCK, arguments)

    def run(self, spider: str, settings: Mapping[str, object], arguments: Mapping[str, object]) -> Outcome:
        items = self.directory / "items.jsonl"
        items.unlink(missing_ok=True)
        words = [f"{name}={value}" for name, value in arguments.items()]
        options = [word for pair in words for word in ("-a", pair)]
        for name, value in settings.items():
            options += ["-s", f"{name}={value}"]
        done = self.scrapy("crawl", spider, "-O", str(items), *options)
        # Not splitlines(): a text may hold line ends of Unicode's.
        found = items.read_text().rstrip("\n").split("\n") if items.exists() and items.stat().st_size else []
        return Outcome(done.returncode, [json.loads(line) for line in found], done.stdout + done.stderr)
