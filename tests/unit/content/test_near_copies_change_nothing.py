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

COPIES = "bigcrawl.features.copies"
NAMES = {
    *(
        "bigcrawl.content.copies",
        "bigcrawl.content.near_copies",
        "bigcrawl.content.sketched",
        "near_copies",
        "read_copies",
        "read_copies_of",
    ),
    *(f"{COPIES}.{module}" for module in ("fold", "near_page", "rows")),
    *("[copies]", "[near]"),  # the tables
}

READERS = {
    "commands/moving/page_lists.py": "lists them",
    "features/copies/fold.py": "finds, counts and notes them",
    "features/copies/near_page.py": "makes sketches",
    "features/copies/page.py": "is extended by it",
    "features/copies/settings.py": "sets how similar they must be",
    "features/copies/rows.py": "has the layout of rows",
    "features/copies/stats.py": "names the count",
    "features/copies/view.py": "shows the count",
    "scheduler/partition/reader.py": "reads the map for the list",
}
"""All code that knows of near copies. Before any acts on them, answer "What an enemy can do" of docs/copies.md."""


def names_in(source: str) -> set[str]:
    """All that a module imports, calls, reads, looks up or spells as a string."""
    names: set[str] = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            names.add(f"[{node.slice.value!s}]")
        elif isinstance(node, ast.ImportFrom):
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
    elsewhere = {path: text for path, text in sources.items() if not path.startswith("content/")}
    assert {path for path, text in elsewhere.items() if names_in(text) & NAMES} == set(READERS)


@pytest.mark.parametrize(
    "source",
    [
        "from bigcrawl.content import copies",
        "from bigcrawl.content.copies import NEAR",
        "import bigcrawl.content.near_copies",
        "budget = seen.counts['near_copies']",
        "drop(manifest.counts['near_copies'])",
        "drop(read_copies_of(directory))",
        "drop(tables['copies'])",
        "from bigcrawl.features.copies import rows",
        "from bigcrawl.features.copies.fold import Copies",
    ],
)
def test_another_reader_is_noticed(source: str) -> None:
    assert names_in(source) & NAMES
