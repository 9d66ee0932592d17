"""A name that begins with an underscore is used in its own module only, read from the source.

Names of named tuples (`_replace` and others) are public in spite of their underscore, and so is `os._exit`.
"""

from __future__ import annotations

import ast

import pytest

from tests.support.imports import package_sources, parsed

PUBLIC = frozenset({"_asdict", "_exit", "_field_defaults", "_fields", "_make", "_replace"})

# Private names of Scrapy and Python that are used all the same, by module, each with its reason.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("installing.py", "cookies._split_domain"): "no setting keeps it from downloading the list of public suffixes",
    ("downloads/middleware.py", "scrapy.exceptions._InvalidOutput"): "Scrapy's own manager of middlewares raises it",
    ("downloads/packing.py", "scrapy.utils._compression._check_max_size"): "it raises what Scrapy's middleware catches",
    ("middlewares/compression.py", "scrapy.utils._compression._DecompressionMaxSizeExceeded"): "Scrapy raises it",
    ("middlewares/spider_output.py", "manager._evaluate_iterable"): "part of the manager's method that is replaced",
    ("middlewares/spider_output.py", "manager._process_spider_exception"): "likewise",
    ("middlewares/spider_output.py", "manager._process_spider_input"): "likewise",
    ("middlewares/link_checks.py", "request._meta"): "`meta` makes a dict for each of a page's requests",
    ("scheduler/adapter/request_codec.py", "request._meta"): "likewise",
    ("scheduler/adapter/spider_intake.py", "request._meta"): "likewise",
    ("scheduler/adapter/started_requests.py", "request._meta"): "likewise",
    ("scheduler/adapter/tries.py", "request._meta"): "likewise",
    ("scheduler/adapter/tries.py", "started._meta"): "likewise",
    ("scheduler/node/watchdog.py", "sys._current_frames"): "the only way to see the stack of another thread",
    ("stored/intake.py", "request._meta"): "`meta` makes a dict for each of a page's requests",
}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def foreign_private_names(source: str) -> set[str]:
    """The private names that a module uses and does not define: `package.module._name`, `request._meta`."""
    tree = parsed(source)
    own = set(_defined(tree))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found.update(name for name in names if any(map(is_private, name.split("."))))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            owner = ast.unparse(node.value)
            if owner not in ("self", "cls", "super()"):  # a base class's, which is for its heirs
                found.add(f"{owner}.{node.attr}")
    return found


def _defined(tree: ast.Module) -> list[str]:
    names = []
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.append(name)
            case ast.Attribute(ast.Name(owner), _, ast.Store()) if owner in imported:
                pass
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=slots):
                names += [str(each.value) for each in ast.walk(slots) if isinstance(each, ast.Constant)]
    return names


def test_private_names_stay_in_their_module() -> None:
    """Each exception is used, too."""
    found = {(path, name) for path, source in package_sources().items() for name in foreign_private_names(source)}
    assert sorted(found - EXCEPTIONS.keys()) == []
    assert sorted(EXCEPTIONS.keys() - found) == []


@pytest.mark.parametrize(
    "source",
    [
        "from bigcrawl.scheduler.records.member import _clamped",
        "from bigcrawl._hidden import name",
        "def f(node: Node): return node._pump",
        "node.parts._client.close()",
        "from package import module\nmodule._name = 1",
        "def f(node): return node._pump or '_pump'",
    ],
)
def test_a_private_name_of_another_module_is_found(source: str) -> None:
    """Planted, it is told."""
    assert foreign_private_names(source)


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n def __init__(self): self._a = 1\n def f(self, other: A): return other._a",
        "class A:\n __slots__ = ('_a',)\n def f(self, other: A): return other._a",
        "class A(B):\n def f(self): return self._of_the_base",
        "import os\nos._exit(1)",
        "visit._replace(number=1)",
        "node.__dict__",
    ],
)
def test_a_name_of_the_modules_own_is_none(source: str) -> None:
    """Nor is a method of named tuples."""
    assert not foreign_private_names(source)
