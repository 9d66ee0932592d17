"""Near copies are counted and listed, and nothing acts on them: an enemy can have any page called one."""

from __future__ import annotations

import ast
from itertools import count
from typing import TYPE_CHECKING

import pytest

from tests.support.imports import package_sources, parsed
from tests.unit.content.pages import edited, page
from tests.unit.content.test_near_copies import ask, key_of, rows_of, table_in

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {"bigcrawl.content.copies", "bigcrawl.content.near_copies", "near_copies", "read_copies", "read_copies_of"}

READERS = {
    "commands/looking/status.py": "prints the count",
    "commands/moving/copies.py": "lists them",
    "scheduler/owner/publishing.py": "sends the count to other nodes",
    "scheduler/partition/fold/step.py": "finds, counts and notes them",
    "scheduler/partition/manifest.py": "holds the count",
    "scheduler/partition/reader.py": "reads the map for the list",
    "scheduler/partition/tables.py": "names the maps",
    "scheduler/records/contents.py": "has the layout of rows",
    "stats.py": "names the count",
}
"""All code that knows of near copies. Before any acts on them, answer "What an enemy can do" of docs/copies.md."""


def names_in(source: str) -> set[str]:
    """Whatever a module imports, calls, reads or spells as a string."""
    names: set[str] = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.ImportFrom):
            names |= {node.module or ""} | {alias.name for alias in node.names}
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import | ast.Attribute | ast.Name | ast.Constant | ast.keyword | ast.AnnAssign):
            names |= {alias.name for alias in getattr(node, "names", ())}
            names |= {str(getattr(node, part, "")) for part in ("attr", "id", "value", "arg")}
    return names


def test_enemy_has_another_site_called_a_near_copy(tmp_path: Path) -> None:
    """By a page like it whose bytes were changed until their key was the smaller one, some two tries."""
    theirs = page(1)
    ours = next(body for n in count() if key_of(body := edited(theirs, 1, 4) + b"<!--%d-->" % n) < key_of(theirs))
    table = table_in(tmp_path)
    assert ask(table, rows_of((1, theirs))) == set()
    assert ask(table, rows_of((2, ours))) == {(key_of(theirs), 2)}


def test_only_what_counts_and_lists_knows_of_near_copies() -> None:
    sources = package_sources()
    elsewhere = {path: text for path, text in sources.items() if not path.startswith(("content/", "simweb/"))}
    assert {path for path, text in elsewhere.items() if names_in(text) & NAMES} == set(READERS)


@pytest.mark.parametrize(
    "source",
    [
        "from bigcrawl.content import copies",
        "from bigcrawl.content.copies import NEAR",
        "import bigcrawl.content.near_copies",
        "budget = seen.counts['near_copies']",
        "drop(manifest.near_copies)",
        "drop(read_copies_of(directory))",
    ],
)
def test_another_reader_is_noticed(source: str) -> None:
    assert names_in(source) & NAMES
