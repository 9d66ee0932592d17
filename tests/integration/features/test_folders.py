"""A feature is a folder: one that is taken out is missed by nobody, and one that is added needs a line of the list."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from bigcrawl.feature_list import FEATURES
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.feature_trees import PROJECT, copied_package, copy_crawl, crawl_by

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LANGUAGES = PROJECT / "tests" / "data" / "features" / "languages"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedWeb]:
    with SimulatedWeb(tmp_path_factory.mktemp("web"), hosts=3, pages=8) as served:
        yield served


@pytest.mark.long("crawls without features; test_a_feature_is_added crawls by a copy too")
@pytest.mark.parametrize("without", [FEATURES[::2], FEATURES[1::2], FEATURES], ids="-".join)
def test_a_crawl_works_without_features(tmp_path: Path, web: SimulatedWeb, without: tuple[str, ...]) -> None:
    """It fetches each page once, and is explained; without any feature, all that looks at a crawl works.

    Each is missing while others are there; that none imports another is held by tests/unit/features/test_seam.py.
    """
    crawl = crawl_by(copied_package(tmp_path / "package", without=without), tmp_path / "crawl", web, {})
    host = str(urlsplit(web.seeds[0]).hostname)
    file = str(tmp_path / "changes.jsonl")
    looks = (("plds",), ("report",), ("hosts",), ("errors",), ("budget", host), ("verify",), ("changes", file))
    asked = (("status",), ("explain", web.seeds[0]), *(looks if without == FEATURES else ()))
    status, explained, *_ = crawl.asked_together(*asked)
    assert status["pages"] == len(web.expected())
    assert explained["where"] == "ended"


@pytest.mark.long("test_state_of_a_feature_that_is_not_there_is_refused reads a manifest of such a crawl")
def test_a_crawl_goes_on_only_with_its_features(tmp_path: Path, web: SimulatedWeb) -> None:
    """Without one of them it ends at its start with one line, and so does what reads its files; nothing is lost."""
    settings = {"BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 1}
    crawl = Crawl(tmp_path / "crawl", web.seeds, {**settings, "BIGCRAWL_MAX_PAGES": 5})
    assert crawl.run() == 0, crawl.log.read_text()
    package = copied_package(tmp_path / "package", without=("copies",))
    without = copy_crawl(package, tmp_path / "crawl", web, settings)
    told = (
        "MANIFEST has state of features that this version of bigcrawl lacks: contents; continue with a version that has"
    )
    assert without.run() == 1
    log = without.log.read_text()
    assert log.count(told) == 1
    assert "Traceback" not in log
    asked = without.frontier("explain", web.seeds[0], check=False)
    assert (asked.returncode, asked.stderr.count(told)) == (1, 1)
    del crawl.settings["BIGCRAWL_MAX_PAGES"]
    assert crawl.run() == 0, crawl.log.read_text()
    assert crawl.status()["pages"] == len(web.expected())


def test_a_limit_of_a_feature_that_is_gone_is_unknown(tmp_path: Path) -> None:
    """A rule that sets it is refused, with the limits that there are."""
    package = copied_package(tmp_path / "package", without=("totals",))
    code = "from bigcrawl.scheduler.rules.budget_rules import parse_rules; parse_rules({'a.example': {'pages': 5}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=package, capture_output=True, text=True, check=False)
    told = "BIGCRAWL_BUDGET_RULES['a.example'] has an unknown limit 'pages'; must be one of "
    assert done.stderr.rstrip().endswith(f"{told}budget, revisit, priority, depth")


def test_a_feature_is_added(tmp_path: Path, web: SimulatedWeb) -> None:
    """By a folder and a line: its setting is read, its marks are folded, its count is shown."""
    package = copied_package(tmp_path / "package", added=[LANGUAGES])
    settings = {"BIGCRAWL_LANGUAGES": "xx", "BIGCRAWL_BUDGET_POLICY": "star"}
    crawl = crawl_by(package, tmp_path / "crawl", web, settings)
    assert crawl.status()["foreign_pages"] > 0
