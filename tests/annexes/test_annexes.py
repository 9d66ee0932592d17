"""An annex stands beside the package: it uses public names alone, and no crawl imports it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from scrapy.exceptions import NotConfigured
from scrapy.utils.test import get_crawler

from bigcrawl.commands.running import parse_action
from bigcrawl.exceptions import ConfigError
from bigcrawl.extensions.end_report import EndReport
from bigcrawl.main_job import main
from tests.support.imports import ANNEXES, PROJECT, annex_sources, imports_of, names_imported, package_sources

if TYPE_CHECKING:
    from pathlib import Path

# Where the package reaches an annex that a user asked for.
REACHING = {
    *("commands/actions.py", "commands/moving/importing.py", "extensions/end_report.py", "main_job.py"),
    *("features/rendering/settings.py", "features/rendering/middlewares.py"),
    *("drum/drum.py", "sampling/__init__.py", "simweb/__init__.py", "spiders/sample.py"),
}


def public_names() -> set[str]:
    """The names that docs/imports.md promises to keep; a module or package there stands for all its names."""
    return set(re.findall(r"`(bigcrawl\.[\w.]+)`", (PROJECT / "docs" / "imports.md").read_text("utf-8")))


def private_imports(path: str, source: str, public: set[str]) -> list[str]:
    """Names that a module of an annex imports from the core, or from another annex, and that are not public."""
    own = path.partition("/")[0]
    return [
        f"{path}: imports {name}"
        for name in sorted(names_imported(source))
        if (top := name.partition(".")[0]).startswith("bigcrawl") and top != own
        if name not in public and name.rpartition(".")[0] not in public
    ]


def reached_in(source: str) -> set[str]:
    """The annexes that a module of the core imports, or names in a string."""
    packages = {annex.name for annex in ANNEXES}
    named = set(re.findall(r"""["'](bigcrawl_[a-z]+)[."']""", source))
    return packages & (named | {name.partition(".")[0] for name in imports_of(source)})


def test_an_annex_uses_public_names_alone() -> None:
    public = public_names()
    assert [fault for path, source in annex_sources().items() for fault in private_imports(path, source, public)] == []


@pytest.mark.parametrize(
    ("source", "is_fault"),
    [
        ("from bigcrawl.exceptions import ConfigError", False),
        ("from bigcrawl.links import read_page", False),
        ("from bigcrawl.spiders.broad import BroadSpider", False),
        ("from bigcrawl.spiders.broad import is_seed", True),
        ("import bigcrawl.url.key", True),
        ("from bigcrawl_simweb.model.web import Web", False),
        ("import json", False),
        ("from bigcrawl.url.domain import PublicSuffixes", True),
        ("def f():\n    from bigcrawl.clock import now_ms", True),
        ("from bigcrawl_other.page import Page", True),
    ],
)
def test_a_private_import_is_found(source: str, is_fault: bool) -> None:
    assert bool(private_imports("bigcrawl_simweb/x.py", source, public_names())) is is_fault


def test_the_package_reaches_annexes_in_few_places() -> None:
    assert {path for path, source in package_sources().items() if reached_in(source)} == REACHING


@pytest.mark.parametrize("source", ["import bigcrawl_simweb.web", "x = 'bigcrawl_simweb'", 'x = "bigcrawl_simweb.web"'])
def test_a_place_that_reaches_an_annex_is_found(source: str) -> None:
    assert reached_in(source) == {"bigcrawl_simweb"}


def test_each_annex_says_what_it_is() -> None:
    """A README that is read in a minute."""
    for annex in ANNEXES:
        words = (annex.parent / "README.md").read_text("utf-8").split()
        assert 20 < len(words) < 200, annex


def without_annexes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bigcrawl.given.find_spec", lambda name: name if name == "bigcrawl" else None)


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (["import", "--from", "jobdir", "--spider", "quotes", "crawls/quotes-1"], "bigcrawl_foreign"),
        (["graph", "graphs"], "bigcrawl_graphs"),
        (["report"], "bigcrawl_report"),
        (["wacz", "crawl.wacz"], "bigcrawl_wacz"),
    ],
)
def test_a_command_names_the_annex_that_it_lacks(
    words: list[str], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_annexes(monkeypatch)
    with pytest.raises(ConfigError, match=f"{package}, which is not installed: pip install bigcrawl"):
        parse_action(words[0], words[1:])


def test_main_job_names_the_web_that_it_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    without_annexes(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["main_job"])
    assert main() == 1
    assert "bigcrawl_simweb, which is not installed" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_report_at_the_end_needs_its_annex(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Scrapy warns that the extension is disabled, and why; the crawl goes on."""
    without_annexes(monkeypatch)
    crawler = get_crawler(settings_dict={"BIGCRAWL_REPORT_DIR": str(tmp_path)})
    with pytest.raises(NotConfigured, match="bigcrawl_report, which is not installed"):
        EndReport.from_crawler(crawler)


def test_an_export_is_imported_without_annexes(monkeypatch: pytest.MonkeyPatch) -> None:
    without_annexes(monkeypatch)
    assert parse_action("import", ["mycrawl.jsonl.zst"]).source == "export"
