"""The rooms of each package: their order, their size, and that no modules import each other in a circle."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.imports import (
    ANNEXES,
    PACKAGE,
    annex_sources,
    dotted,
    imported_with_names,
    imports_of,
    package_sources,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

# The rooms of each package, which are its folders, in an order in which each imports from those before it. Scripts and
# pages import nothing. A module that stands beside the rooms has no place in the order, but is in no circle with them.
ROOMS = {
    "commands": ("steering", "moving", "looking", "pages", "repairing"),
    "dashboard": ("page",),
    "features": ("traps", "mirrors", "copies", "revisits", "totals", "votes", "tallies", "whole_hosts",
                 "requisites", "site_priorities", "rendering"),
    "redisdb": ("lua", "scripts"),
    "redisdb/lua": (
        "prelude", "back_queues", "crawl", "entries", "exchange", "gates", "hosts", "inbox", "looking", "ownership",
        "reconciliation", "sums", "suspects", "tallies",
    ),
    "scheduler": (
        "records", "rules", "budgets", "queues", "partition", "crawl", "gates", "handout", "owner", "node", "adapter",
    ),
    "scheduler/adapter": ("values",),
    "scheduler/node": ("loops",),
    "scheduler/owner": ("hot", "claiming"),
    "scheduler/partition": ("fold",),
    "views": ("activity",),
    "bigcrawl_rendering": ("script",),
    "bigcrawl_report": ("page",),
    "bigcrawl_simweb": ("basics", "exhibits", "model", "serve", "check"),
}  # fmt: skip
FILES_MAX = 20  # modules or scripts in a folder; more of them hide what belongs together


def room_in(folder: str, name: str) -> str:
    """'scheduler', 'bigcrawl.scheduler.gates.robots' -> 'gates'; '' for what is not in the folder."""
    inside = f"{dotted(folder)}."
    return name.removeprefix(inside).partition(".")[0] if name.startswith(inside) else ""


def room_faults(path: str, source: str) -> list[str]:
    """What the module at `path` imports from rooms behind its own, one line each."""
    faults = []
    for folder, rooms in ROOMS.items():
        own = room_in(folder, dotted(path))
        behind = rooms[rooms.index(own) + 1 :] if own in rooms else ()
        found = [name for name in sorted(imports_of(source)) if room_in(folder, name) in behind]
        faults += [f"{path}: imports {name} from a room behind its own" for name in found]
    return faults


def module_imports(modules: Mapping[str, str]) -> dict[str, set[str]]:
    """Which modules each imports, by dotted names, given the sources by path."""
    names = {dotted(path) for path in modules}
    return {dotted(path): imported_with_names(source) & names for path, source in modules.items()}


def room_circles(modules: Mapping[str, str]) -> dict[str, list[str]]:
    """The rooms that import each other in circles, by the folder in which they are, where there are any."""
    imports = module_imports(modules)
    circles = {}
    for folder in ROOMS:
        rooms: dict[str, set[str]] = {}
        for name, others in imports.items():
            if own := room_in(folder, name):
                rooms.setdefault(own, set()).update(room_in(folder, other) for other in others)
        if circle := circle_in(rooms):
            circles[folder] = circle
    return circles


def folder_faults(files: Collection[str]) -> list[str]:
    """Folders without a place in ROOMS, places without a folder, and crowded folders, given the paths of all files."""
    folders = {path.rpartition("/")[0] for path in files} - {""}
    there = {folder for folder in folders if "/" in folder}
    there |= {folder.rpartition("/")[0] for folder in there if folder.count("/") > 1}
    named = {f"{folder}/{room}" for folder, rooms in ROOMS.items() for room in rooms}
    faces = ("__init__.py", "__main__.py")  # Python looks for them in the package's own folder
    counted = Counter(p.rpartition("/")[0] for p in files if p.endswith((".py", ".lua")) and not p.endswith(faces))
    return [
        *(f"{folder}/ has no place in ROOMS" for folder in sorted(there - named)),
        *(f"{folder}/ is in ROOMS and holds nothing" for folder in sorted(named - there)),
        *(f"{folder or 'bigcrawl'}/ has {n} files: divide it" for folder, n in counted.items() if n > FILES_MAX),
    ]


def circle_in(imports: Mapping[str, Collection[str]]) -> list[str]:
    """The modules that import each other in circles, or lie between two of them, given what each module imports."""
    left = {name: {other for other in others if other in imports} - {name} for name, others in imports.items()}
    while ends := {name for name, others in left.items() if not others}:
        left = {name: others - ends for name, others in left.items() if name not in ends}
    while starts := left.keys() - set().union(*left.values()):
        left = {name: others for name, others in left.items() if name not in starts}
    return sorted(left)


@pytest.fixture(scope="module")
def modules() -> dict[str, str]:
    return package_sources() | annex_sources()


def test_imports_go_one_way_between_rooms(modules: dict[str, str]) -> None:
    """A room imports from those before it, for types too, and no rooms import each other in a circle."""
    assert [fault for path, source in modules.items() for fault in room_faults(path, source)] == []
    assert room_circles(modules) == {}


def test_no_modules_import_each_other_in_a_circle(modules: dict[str, str]) -> None:
    """Nowhere in the package, for types neither."""
    imports = module_imports(modules)
    assert circle_in(imports) == []
    assert sum(map(len, imports.values())) > len(modules), "imports are found"


def test_every_room_is_known_and_none_is_crowded() -> None:
    """A new folder gets its place in ROOMS; a folder of more than some twenty modules or scripts is divided."""
    tops = [(PACKAGE, PACKAGE), *((annex.parent, annex) for annex in ANNEXES)]
    paths = [(path.relative_to(base).as_posix(), path) for base, top in tops for path in top.rglob("*")]
    assert folder_faults([name for name, path in paths if path.is_file() and "__pycache__" not in path.parts]) == []


def test_what_tests_share_is_in_rooms() -> None:
    """A folder of tests/support is divided as one of the package is."""
    support = PACKAGE.parent / "tests" / "support"
    counted = Counter(path.parent.name for path in support.rglob("*.py") if path.name != "__init__.py")
    assert {folder: count for folder, count in counted.items() if count > FILES_MAX} == {}
    assert counted["support"] < counted.total() / 2, "the rooms are found"


def test_the_tests_have_the_folders_of_the_package() -> None:
    """A module's tests are where its path says. Scripts are tested by tests/contract, against a real Redis."""
    tests = PACKAGE.parent / "tests" / "unit"
    assert _folders(tests) - {"benchmarks"} == _folders(PACKAGE) - {"redisdb/scripts"}
    for annex in ANNEXES:
        assert _folders(PACKAGE.parent / "tests" / "annexes" / annex.parent.name) == _folders(annex)


def _folders(top: Path) -> set[str]:
    return {str(path.parent.relative_to(top)) for path in top.rglob("*.py")}


@pytest.mark.parametrize(
    ("path", "source", "is_fault"),
    [
        ("scheduler/records/held.py", "from bigcrawl.scheduler.gates.interfaces import Closed", True),
        ("scheduler/gates/robots.py", "if TYPE_CHECKING:\n    from bigcrawl.scheduler.node.node import Node", True),
        ("commands/steering/pace.py", "from bigcrawl.commands.looking.status import status_text", True),
        ("bigcrawl_simweb/model/web.py", "from bigcrawl_simweb.serve.server import SimServer", True),
        ("scheduler/node/node.py", "from bigcrawl.scheduler.gates.interfaces import Closed", False),
        ("scheduler/scheduler.py", "from bigcrawl.scheduler.node.node import Node", False),
    ],
)
def test_an_import_from_a_room_behind_is_found(path: str, source: str, is_fault: bool) -> None:
    """Planted, it is told; from a room before, it is none."""
    assert bool(room_faults(path, source)) is is_fault


@pytest.mark.parametrize(
    ("path", "planted", "folder"),
    [
        ("scheduler/adapter/registry.py", "from bigcrawl.scheduler.scheduler import Scheduler", "scheduler"),
        ("scheduler/node/exchange.py", "from bigcrawl.scheduler.node.loops.loop import Loop", "scheduler/node"),
        ("redisdb/keys.py", "if TYPE_CHECKING:\n    from bigcrawl.redisdb.scripts.call import Call", "redisdb"),
        ("commands/result.py", "def f():\n    import bigcrawl.commands.looking.status", "commands"),
    ],
)
def test_a_circle_between_rooms_is_found(modules: dict[str, str], path: str, planted: str, folder: str) -> None:
    """Planted, it is told, though no two modules import each other: a module beside the rooms counts as a room."""
    assert list(room_circles({**modules, path: f"{modules[path]}\n{planted}\n"})) == [folder]


def test_a_folder_without_a_place_and_a_crowded_one_are_found() -> None:
    """At any depth, whatever its files are; of scripts as of modules."""
    known = [f"{folder}/{room}/x" for folder, rooms in ROOMS.items() for room in rooms]
    assert folder_faults(known) == []
    assert folder_faults([*known, "dashboard/merging/x.py"]) == ["dashboard/merging/ has no place in ROOMS"]
    assert folder_faults([*known, "scheduler/node/loops/deep/x.txt"]) == [
        "scheduler/node/loops/deep/ has no place in ROOMS"
    ]
    assert folder_faults(known[1:]) == ["commands/steering/ is in ROOMS and holds nothing"]
    scripts = [f"redisdb/lua/hosts/{number}.lua" for number in range(FILES_MAX + 1)]
    assert folder_faults([*known, *scripts]) == ["redisdb/lua/hosts/ has 21 files: divide it"]
    assert folder_faults([*known, *scripts[1:], "redisdb/lua/hosts/__init__.py"]) == []


def test_a_circle_is_found() -> None:
    """Of two or of three modules; what leads to it or away from it is no part of it."""
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circle_in({"a": {"b"}, "b": {"a"}, "c": {"a"}, "d": set()}) == ["a", "b"]
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}) == ["a", "b", "c"]
