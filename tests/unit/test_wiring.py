"""How objects are put together: no constructor takes much, and a node hands out few parts. Read from the source."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from tests.support.imports import PACKAGE, annex_sources, package_sources, parsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ARGUMENTS_MAX: Final = 7
PARTS_MAX: Final = 15

# A record of values, a dataclass or a NamedTuple, may have more fields: they are what it says. It counts like any class
# if it holds a service, that is something to call or an object of a class with a constructor of its own: it could hide
# the arguments of another constructor.
EXCEPTIONS: Final = {
    "dashboard/actions.py ReadAction": "a row of a table: questions of the dashboard",
    "links/batch.py Links": "public: what a spider says of a batch, by name",
    "metrics/outcomes.py Metric": "a row of a table: metrics",
    "scheduler/partition/fold/pld_records.py BudgetSource": "what a step asks, by name; each has a default",
    "bigcrawl_simweb/check/rules.py CheckRules": "what a crawl is held to, by name; each has a default",
    "bigcrawl_simweb/exhibits/exhibit.py Exhibit": "a row of a table: exhibits",
    "bigcrawl_simweb/exhibits/exhibit.py ExhibitContext": "what the answers of that table are written from",
    "bigcrawl_simweb/model/robots.py RobotsFile": "a row of a table: kinds of robots.txt",
    "bigcrawl_simweb/model/web.py Web": "the description of a web, by name: most have three",
}


class Made(NamedTuple):
    """How objects of a class are made.

    Attributes:
        arguments: of its constructor, `self` not counted.
        types: the names of types among the fields of a record; None if the class is no record.
    """

    arguments: int
    types: frozenset[str] | None


def made_in(source: str) -> dict[str, Made]:
    """The classes of a module, without those that take over the constructor of another."""
    found = {}
    for node in ast.walk(parsed(source)):
        if not isinstance(node, ast.ClassDef):
            continue
        init = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
        if init is not None:
            given = init.args
            found[node.name] = Made(len([*given.posonlyargs, *given.args, *given.kwonlyargs]) - 1, None)
        elif _is_record(node):
            fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
            types = {name.id for each in fields for name in ast.walk(each.annotation) if isinstance(name, ast.Name)}
            found[node.name] = Made(len(fields), frozenset(types))
    return found


def _is_record(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(each) or "NamedTuple" in ast.unparse(each) for each in _above(node))


def _above(node: ast.ClassDef) -> Iterable[ast.expr]:
    return (*node.decorator_list, *node.bases)


def too_many(modules: Mapping[str, str]) -> list[str]:
    """Classes whose constructors take more than `ARGUMENTS_MAX`, given the sources by path."""
    made = {f"{path} {name}": each for path, source in modules.items() for name, each in made_in(source).items()}
    services = {name.rpartition(" ")[2] for name, each in made.items() if each.types is None} | {"Callable"}
    return [
        name
        for name, each in made.items()
        if each.arguments > ARGUMENTS_MAX and (each.types is None or each.types & services)
    ]


def test_no_constructor_takes_many_arguments() -> None:
    """Each exception is needed."""
    assert sorted(too_many(package_sources() | annex_sources())) == sorted(EXCEPTIONS)


MANY: Final = "".join(f"    {name}: int\n" for name in "abcdefgh")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("class A:\n def __init__(self, a, b, c, d, e, f, g): ...", []),
        ("class A:\n def __init__(self, a, b, c, d, e, f, g, h): ...", ["m.py A"]),
        ("class A:\n def __init__(self, a, b, c, d, /, e, f, *, g, h=1): ...", ["m.py A"]),
        (f"@dataclass\nclass A:\n{MANY}", []),
        (f"class A(NamedTuple):\n{MANY}    i: Callable[[], int]\n", ["m.py A"]),
        (f"@dataclass\nclass A:\n{MANY}    i: Clock | None\nclass Clock:\n def __init__(self): ...", ["m.py A"]),
    ],
)
def test_a_constructor_of_many_arguments_is_found(source: str, found: list[str]) -> None:
    """By position or by name; of a record only if it holds more than values."""
    assert too_many({"m.py": source}) == found


def test_a_node_hands_out_few_parts() -> None:
    """Others are parts of these."""
    tree = parsed((PACKAGE / "scheduler/node/assembly.py").read_text("utf-8"))
    [parts] = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == "Parts"]
    stores = [node for node in ast.walk(parts) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    names = {node.attr for node in stores if ast.unparse(node.value) == "self"}
    assert 0 < len(names) <= PARTS_MAX


# What is given to an object after its construction and stays with it: something to call, or a part.
TIES: Final = {
    "adapter/scrapy_engine.py ScrapyEngine.open": "outputs and callbacks are the spider's, which Scrapy makes later",
    "adapter/scrapy_engine.py ScrapyEngine.attach": "Scrapy makes the scheduler before a crawl can be joined",
    "adapter/scrapys_names.py ScrapysStats.attach": "likewise",
    "adapter/shutdown.py Shutdown.attach": "likewise",
    "adapter/spider_flow.py SpiderFlow.attach": "likewise",
    "adapter/spider_intake.py SpiderIntake.attach": "likewise",
    "adapter/spider_start.py SpiderStart.attach": "likewise",
    "adapter/started_requests.py StartedRequests.attach": "likewise",
    "scheduler.py Scheduler.attach": "likewise",
    "gates/robots.py RobotsGate.tell_read_to": "who listens to Scrapy's signals is the spider's",
    "gates/robots.py RobotsGate.tell_sitemaps_to": "a spider that asks for sitemaps comes after the node",
    "handout/lanes.py HostLanes.open_lanes": "gates and pump give URLs to the handout, and get some back from lanes",
    "handout/recent.py RecentWork.set_watcher": "the exchange keeps recent work, and orders are read by a later part",
    "node/heartbeat.py Leases.tell_views_to": "an extension listens from its start to its end",
    "node/outbox.py Outbox.call_when_sent": "observers hear of what is sent, and give their rows to the outbox",
    "owner/owned_partition.py OwnedPartition.call_on_event": "the table hears of a partition while it is owned",
    "records/held_urls.py HeldUrls.tell_left_hosts_to": "gates hold hosts for held URLs, which tell when they leave",
}

# Objects with constructors of their own that are no parts: what was read or counted, replaced by the next one.
VALUES: Final = {"Blacklist", "DelayBook", "FrontQueues", "InDegreeCounts", "PartitionCopy", "ValueCodec"}


def ties_in(source: str, parts: Iterable[str]) -> list[str]:
    """The methods of a module that keep something to call, or one of these parts."""
    tree = parsed(source)
    kept = {"Callable", *parts, *_named_callables(tree)}
    return [
        f"{node.name}.{method.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.name != "__init__"
        if _keeps(method, kept)
    ]


def _named_callables(tree: ast.Module) -> set[str]:
    """Names that a module gives to types of functions: those of `gaps` are imported, and begin with `Note`."""
    imported = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    names = {alias.name for each in imported for alias in each.names if alias.name.startswith("Note")}
    return names | {
        target.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Subscript)
        if isinstance(each.value.value, ast.Name) and each.value.value.id == "Callable"
        for target in each.targets
        if isinstance(target, ast.Name)
    }


def _keeps(method: ast.FunctionDef | ast.AsyncFunctionDef, kept: set[str]) -> bool:
    arguments = (*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs)
    given = {
        each.arg
        for each in arguments
        if each.annotation is not None
        and kept & {name.id for name in ast.walk(each.annotation) if isinstance(name, ast.Name)}
    }
    return any(_is_kept(each, given) for each in ast.walk(method) if isinstance(each, ast.Assign))


def _is_kept(assignment: ast.Assign, given: set[str]) -> bool:
    targets = [each for target in assignment.targets for each in ast.walk(target) if isinstance(each, ast.Attribute)]
    own = [each for each in targets if isinstance(each.value, ast.Name) and each.value.id == "self"]
    if not any(isinstance(each.ctx, ast.Store) for each in own):
        return False
    value = assignment.value
    plain = isinstance(value, ast.Name | ast.IfExp | ast.Tuple)
    return plain and bool(given & {name.id for name in ast.walk(value) if isinstance(name, ast.Name)})


def test_ties_after_construction_are_listed() -> None:
    """Of the scheduler's objects; each that is listed is there."""
    sources = {path: text for path, text in package_sources().items() if path.startswith("scheduler/")}
    made = {name: each for source in sources.values() for name, each in made_in(source).items()}
    parts = {name for name, each in made.items() if each.types is None} - VALUES | {"PageStorage"}
    found = [
        f"{path.removeprefix('scheduler/')} {tie}" for path, source in sources.items() for tie in ties_in(source, parts)
    ]
    assert sorted(found) == sorted(TIES)


@pytest.mark.parametrize(
    ("method", "found"),
    [
        ("def f(self, tell: Callable[[], None]): self._tell = tell", ["A.f"]),
        ("def f(self, tell: Callable[[], None] | None): self._tell = tell if self.x else None", ["A.f"]),
        ("def f(self, a: Part, b: int): self.a, self.b = a, b", ["A.f"]),
        ("def f(self, a: Part): self.b = a.b", []),
        ("def f(self, b: int): self.b = b", []),
        ("def __init__(self, a: Part): self.a = a", []),
    ],
)
def test_a_tie_is_found(method: str, found: list[str]) -> None:
    """What is only read of it is none."""
    assert ties_in(f"class A:\n {method}", {"Part"}) == found
