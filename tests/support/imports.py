"""What the modules of the package import, read from the source: nothing is imported to find out."""

from __future__ import annotations

import ast
import gc
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "bigcrawl"
ANNEXES = tuple(sorted(PROJECT.glob("annexes/*/bigcrawl_*")))


def package_sources() -> dict[str, str]:
    """Source by path below bigcrawl/."""
    return {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def annex_sources() -> dict[str, str]:
    """The same of all annexes; a path begins with the annex's package."""
    files = [(annex.parent, path) for annex in ANNEXES for path in sorted(annex.rglob("*.py"))]
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for folder, path in files}


@lru_cache(maxsize=4)
def parsed(source: str) -> ast.Module:
    """The tree of a module. No garbage is looked for meanwhile: that takes twice as long, and a tree is none."""
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.enable()


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements, however deep, and no expressions: imports are found in a tenth of the time."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, part, ())


@cache
def imports_of(source: str) -> set[str]:
    """Dotted names that a module imports, anywhere in it, for types alone too.

    `from bigcrawl import url` counts as bigcrawl.url. A relative import is a name that begins with a dot.
    """
    names: set[str] = set()
    for node in statements(parsed(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names.update(f"{module}.{alias.name}" if module == "bigcrawl" else module for alias in node.names)
    return names


@cache
def imported_with_names(source: str) -> set[str]:
    """As `imports_of`, and for `from package import module` the module too."""
    found = set(imports_of(source))
    for node in statements(parsed(source)):
        if isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def names_imported(source: str) -> set[str]:
    """Each name that a module imports, behind its module: `from m import a` counts as m.a, `import m` as m."""
    names: set[str] = set()
    for node in statements(parsed(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def dotted(path: str) -> str:
    """'drum/merge.py' -> 'bigcrawl.drum.merge', 'drum/__init__.py' -> 'bigcrawl.drum'; of an annex its own package."""
    names = path.removesuffix(".py").split("/")
    return ".".join(names if names[0].startswith("bigcrawl_") else ("bigcrawl", *names)).removesuffix(".__init__")
