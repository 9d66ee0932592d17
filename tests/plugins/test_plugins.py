"""Real plug-ins, each once on stock Scrapy and once on bigcrawl: the same items. `make test-plugins` installs them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.integration.scrapy_compat.site import Site
from tests.integration.stock.test_stock import ADDED, COMMON
from tests.support.running.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHON: Final = os.environ.get("BIGCRAWL_PLUGINS_PYTHON")
REPOSITORY = Path(__file__).parents[2]
RUN_S_MAX = 300

pytestmark = pytest.mark.skipif(not PYTHON, reason="needs the plug-ins: make test-plugins")

_IMPERSONATES = dict.fromkeys(("http", "https"), "scrapy_impersonate.ImpersonateDownloadHandler")
PLUGINS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # spider: the project's settings, and those that bigcrawl takes besides
    "poet": ({"ADDONS": {"scrapy_poet.Addon": 300}}, {}),
    "impersonate": ({"DOWNLOAD_HANDLERS": _IMPERSONATES, "USER_AGENT": "", "RETRY_TIMES": 1}, {}),
    "playwright": ({}, {}),
}


@pytest.fixture(scope="module")
def sites() -> Iterator[tuple[Site, Site]]:
    with Site("127.84.3") as one, Site("127.84.4") as other:
        yield one, other


def items_of(site: Site, directory: Path, spider: str, settings: dict[str, Any]) -> list[str]:
    directory.mkdir()
    order = {
        "runner": "AsyncCrawlerProcess",
        "crawls": [[spider, settings]],
        "arguments": {"origins": site.origins, "refusing": site.refusing},
        "told": str(directory / "told.json"),
    }
    log = directory / "log"
    with log.open("w") as out:
        words = [str(PYTHON), "-m", "tests.plugins.side", json.dumps(order)]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        process = spawn(words, cwd=directory, env=environment, stdout=out, stderr=subprocess.STDOUT)
        assert process.wait(RUN_S_MAX) == 0, log.read_text()
    text = (directory / "told.json").read_text()
    for number, origin in enumerate([*site.origins, site.refusing]):
        text = text.replace(origin, f"http://site{number}")
    [told] = json.loads(text)
    assert told["items"], log.read_text()
    return sorted(json.dumps(item, sort_keys=True) for item in told["items"])


@pytest.mark.parametrize("spider", PLUGINS)
def test_plugin_gives_the_items_of_stock_scrapy(
    tmp_path: Path, sites: tuple[Site, Site], redis_url: str, crawl_name: str, spider: str
) -> None:
    """With retries and redirects."""
    settings, ours = PLUGINS[spider]
    wanted = items_of(sites[0], tmp_path / "stock", spider, {**COMMON, **settings})
    added = {**ADDED, "BIGCRAWL_REDIS_URL": redis_url, "BIGCRAWL_CRAWL": crawl_name, **ours}
    addons = {**settings.get("ADDONS", {}), **ADDED["ADDONS"]}
    found = items_of(sites[1], tmp_path / "ours", spider, {**COMMON, **settings, **added, "ADDONS": addons})
    assert found == wanted
