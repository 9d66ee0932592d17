"""What is told once, in docstrings and on one page, against the code: the steps of a URL's life and a node's loops."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path

import bigcrawl.scheduler
from bigcrawl.scheduler.node import node
from tests.support.imports import parsed, statements
from tests.unit.scheduler.world import World

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "bigcrawl"
SCHEDULER = PACKAGE / "scheduler"


def definitions() -> set[str]:
    """Names of all classes and functions of the package, methods as `Class.method` too."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for top in statements(parsed(path.read_text("utf-8"))):
            if isinstance(top, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(top.name)
                found |= {f"{top.name}.{part.name}" for part in ast.iter_child_nodes(top) if hasattr(part, "name")}
    return found


def module_file(name: str) -> Path | None:
    """The file of a module that is named by the end of its dotted path: `codec`, `url.key`, `bigcrawl.drum`."""
    ends = [f"/{name.replace('.', '/')}{end}" for end in (".py", "/__init__.py")]
    for root in (SCHEDULER, PACKAGE):
        for path in sorted(root.rglob("*.py")):
            if path.as_posix().endswith(tuple(ends)):
                return path
    return None


def is_module(name: str) -> bool:
    return module_file(name) is not None


def is_script(name: str) -> bool:
    return any((PACKAGE / "redisdb" / "lua").rglob(f"{name}.lua"))


def steps() -> list[tuple[int, str, list[str]]]:
    """(number, name, what carries it) of each step in the table of the scheduler's docstring."""
    rows = re.findall(r"^ {4}( \d|\d\d) (\S.{13})(\S.*?)(?: {2,}.*)?$", bigcrawl.scheduler.__doc__ or "", re.MULTILINE)
    return [(int(number), name.strip(), re.findall(r"`([^`]+)`", carried)) for number, name, carried in rows]


def loops_told(text: str | None) -> list[str]:
    return re.findall(r"^ {4}(\w+) {2,}\S", text or "", re.MULTILINE)


async def loops_run(tmp_path: Path) -> list[str]:
    """The loops that a node's runner starts, by the names of their tasks; each is cut off before its first turn."""
    made = World(tmp_path, "story", "redis://127.0.0.1:1", {}).new_node()
    made.runner.start()
    names = [task.get_name() for task in made.runner._tasks]
    await made.runner.stop()
    await made.parts.ownership.close(wait=True)
    return [name.removeprefix("bigcrawl-") for name in names]


def test_the_steps_are_numbered_and_carried_by_what_is_there() -> None:
    """Fourteen steps in order; each names modules or scripts of the project, and none is left to nothing."""
    table = steps()
    assert [number for number, _, _ in table] == list(range(1, 15))
    carriers = {name: carried for _, name, carried in table}
    for name, carried in carriers.items():
        assert carried or name in {"parsed", "acknowledged"}, f"step {name} names nobody"  # these share a call with 12
        assert all(is_module(word) or is_script(word) for word in carried), (name, carried)


def test_the_life_of_a_url_names_what_is_there() -> None:
    """What its page writes in code quotes is a module, a script, or defined in the package."""
    known = definitions()
    _, _, story = (PROJECT / "docs" / "life-of-a-url.md").read_text("utf-8").partition("<!-- begin")
    assert "## Transition by transition" in story
    for word in re.findall(r"`([^`\s]+)`", story):
        is_stat = word.startswith("bigcrawl/")
        assert is_stat or is_module(word) or is_script(word) or word in known, word


def test_the_steps_that_modules_refer_to_are_theirs() -> None:
    """A module that the table names and that speaks of steps names one of those it stands beside."""
    referring = 0
    for number, name, carried in steps():
        for word in carried:
            path = module_file(word)
            told = (
                re.search(r"\(steps?\s+([\d, toand]+?)\s+of\s+a\s+URL's\s+life", path.read_text("utf-8"))
                if path
                else None
            )
            if told is not None:
                referring += 1
                numbers = [int(part) for part in re.findall(r"\d+", told[1])]
                assert min(numbers) <= number <= max(numbers), (name, word)
    assert referring > 10


def test_the_loops_are_told_once_and_are_those_that_run(tmp_path: Path) -> None:
    """The table in node.py's docstring has the loops that run, in their order; the glossary has their names."""
    run = asyncio.run(loops_run(tmp_path))
    assert len(run) > 3
    assert loops_told(node.__doc__) == run
    assert {path.stem for path in (SCHEDULER / "node" / "loops").glob("*.py")} >= set(run), "each is a module"
    assert f"| {', '.join(run)} |" in (PROJECT / "docs" / "glossary.md").read_text("utf-8")


def test_no_other_page_counts_the_loops() -> None:
    """How many loops and questions there are is said by their tables alone: a number elsewhere is soon untrue."""
    number = "(two|three|four|five|six|seven|eight)"
    count = re.compile(rf"\b{number} loops\b|gatekeeper. asks {number}\b", re.IGNORECASE)
    pages = [*(PROJECT / "docs").glob("*.md"), *PACKAGE.rglob("*.py"), *PROJECT.glob("*.md")]
    for page in pages:
        assert count.search(page.read_text("utf-8")) is None, page
