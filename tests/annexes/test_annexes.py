"""An annex stands beside the package: it uses public names alone, and no crawl imports it."""

from __future__ import annotations

import re

import pytest

from tests.support.imports import ANNEXES, PROJECT, annex_sources, imports_of, package_sources

# Where the package reaches an annex that a user asked for.
REACHING = {"main_job.py", "simweb/__init__.py"}


def public_modules() -> set[str]:
    """The modules of the names that docs/imports.md promises to keep."""
    names = re.findall(r"`(bigcrawl\.[\w.]+)`", (PROJECT / "docs" / "imports.md").read_text("utf-8"))
    return {name.rpartition(".")[0] for name in names}


def private_imports(path: str, source: str, public: set[str]) -> list[str]:
    """Imports of a module of an annex from the core, or from another annex, that are not public."""
    own = path.partition("/")[0]
    return [
        f"{path}: imports {name}"
        for name in sorted(imports_of(source))
        if name.partition(".")[0].startswith("bigcrawl") and name.partition(".")[0] != own and name not in public
    ]


def test_an_annex_uses_public_names_alone() -> None:
    public = public_modules()
    assert [fault for path, source in annex_sources().items() for fault in private_imports(path, source, public)] == []


@pytest.mark.parametrize(
    ("source", "is_fault"),
    [
        ("from bigcrawl.exceptions import ConfigError", False),
        ("from bigcrawl_simweb.model.web import Web", False),
        ("import json", False),
        ("from bigcrawl.url.canonical import host_of", True),
        ("def f():\n    from bigcrawl.clock import now_ms", True),
        ("from bigcrawl_other.page import Page", True),
    ],
)
def test_a_private_import_is_found(source: str, is_fault: bool) -> None:
    assert bool(private_imports("bigcrawl_simweb/x.py", source, public_modules())) is is_fault


def test_the_package_reaches_annexes_in_few_places() -> None:
    names = {annex.name for annex in ANNEXES}
    assert names
    reaching = {
        path
        for path, source in package_sources().items()
        if names & {name.partition(".")[0] for name in imports_of(source)}
    }
    assert reaching == REACHING


def test_each_annex_says_what_it_is() -> None:
    """A README that is read in a minute."""
    for annex in ANNEXES:
        words = (annex.parent / "README.md").read_text("utf-8").split()
        assert 20 < len(words) < 200, annex
