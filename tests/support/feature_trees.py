"""Copies of the package with other features, and crawls of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.feature_list import FEATURES
from tests.support.crawling.crawls import Crawl, SimulatedWeb

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PROJECT: Final = Path(__file__).parents[2]
_LIST: Final = "feature_list.py"
_ASK: Final = """
import json, sys
from scrapy.settings import Settings
from bigcrawl.commands.running import parse_action, run_action
from bigcrawl.config import read_config
options, asked = map(json.loads, sys.argv[1:])
config = read_config(Settings(dict(word.split("=", 1) for word in options)))
results = [run_action(config, name, parse_action(name, words)) for name, *words in asked]
assert not any(result.status for result in results), [result.text for result in results]
print(json.dumps([result.data for result in results]))
"""


def copied_package(directory: Path, *, without: Iterable[str] = (), added: Iterable[Path] = ()) -> Path:
    """Copy the package without some features' folders and lines, and with other folders. Return where it is."""
    shutil.copytree(PROJECT / "bigcrawl", directory / "bigcrawl")  # with what is compiled
    features, registry = directory / "bigcrawl" / "features", directory / "bigcrawl" / _LIST
    text = registry.read_text()
    for name in without:
        shutil.rmtree(features / name)
        assert text.count(f'    "{name}",\n') == 1, "a feature is one line of the list"
        text = text.replace(f'    "{name}",\n', "")
    for folder in added:
        shutil.copytree(folder, features / folder.name)
        assert f'    "{FEATURES[-1]}",\n' in text
        text = text.replace(f'    "{FEATURES[-1]}",\n', f'    "{FEATURES[-1]}",\n    "{folder.name}",\n')
    registry.write_text(text)
    return directory


class CopyCrawl(Crawl):
    """A crawl by a copy of the package, with an interpreter of its own, whose commands are the copy's too."""

    def frontier(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "scrapy", "frontier", *words, *self.options()]
        done = subprocess.run(
            command, env=self._environment(), cwd=self.cwd, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == 0 or not check, done.stderr
        return done

    asked = Crawl.asked_by_command

    def asked_together(self, *asked: tuple[str, ...]) -> list[dict[str, Any]]:
        """What several actions of the copy say, by one process."""
        command = [sys.executable, "-c", _ASK, json.dumps(self.options()[1::2]), json.dumps(asked)]
        done = subprocess.run(
            command, env=self._environment(), cwd=self.cwd, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        answers: list[dict[str, Any]] = json.loads(done.stdout)
        return answers


def copy_crawl(package: Path, directory: Path, web: SimulatedWeb, settings: Mapping[str, object]) -> CopyCrawl:
    """A crawl of a web by a copy of the package."""
    return CopyCrawl(
        directory,
        web.seeds,
        {"BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 4, **settings},
        environment={"PYTHONPATH": os.fspath(package)},
        cold=True,
        cwd=package,
    )


def crawl_by(package: Path, directory: Path, web: SimulatedWeb, settings: Mapping[str, object]) -> CopyCrawl:
    """Crawl a web to its end by a copy of the package."""
    crawl = copy_crawl(package, directory, web, settings)
    assert crawl.run() == 0, crawl.log.read_text()
    return crawl
