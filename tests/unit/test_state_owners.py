"""State is written by the object that owns it, read from the source: nothing is imported to find out."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEDULER = Path(__file__).resolve().parents[2] / "bigcrawl" / "scheduler"

# Rooms in which an object assigns its own attributes alone, and no part of what it holds.
ROOMS = ("owner", "partition")
# What an owned partition is called where others use it: nobody there assigns anything of it.
OWNED = frozenset({"mine", "owned"})
# Not objects of ours: the standard library's errors, and the client's doubts, which are taken and put back.
ALLOWED = frozenset({"error.__cause__", "client.in_doubt"})


def assigned(source: str) -> Iterator[str]:
    """Attributes that a source assigns, as it names them: `self._hot`, `owned.disk.budgets`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
            targets = [node.target]
        else:
            continue
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            yield from (ast.unparse(part) for part in parts if isinstance(part, ast.Attribute))


def faults(room: str, source: str) -> list[str]:
    """What a module of the room assigns that is not its own."""
    found = [name for name in assigned(source) if name not in ALLOWED]
    if room in ROOMS:
        return [name for name in found if name.count(".") > 1 or not name.startswith("self.")]
    return [name for name in found if name.partition(".")[0] in OWNED]


def test_nobody_writes_the_state_of_an_owned_partition_but_itself() -> None:
    """Nor that of a partition on disk; others call methods, whose names say what has happened."""
    modules = sorted(SCHEDULER.rglob("*.py"))
    found = [(path.name, faults(path.parent.name, path.read_text("utf-8"))) for path in modules]
    assert [(name, faulty) for name, faulty in found if faulty] == []


@pytest.mark.parametrize(
    ("room", "source", "is_fault"),
    [
        ("owner", "owned.draining = True", True),
        ("owner", "self.hot.urls += 1", True),
        ("partition", "before, log.size = log.size, 0", True),
        ("node", "mine.due_ms = 0", True),
        ("node", "owned.disk.budgets = None", True),
        ("owner", "self.draining = True", False),
        ("owner", "owned = self.owned[0]", False),
        ("node", "held.due_ms = 0", False),
    ],
)
def test_an_assignment_to_another_objects_state_is_found(room: str, source: str, is_fault: bool) -> None:
    """Planted, it is told; an object's own is none."""
    assert bool(faults(room, source)) is is_fault
