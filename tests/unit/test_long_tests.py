"""What `make test` leaves out: each says why, and every room keeps tests that always run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.running.tables import each

TESTS = Path(__file__).resolve().parents[1]
SELDOM = ("benchmark", "fault", "long", "system")
ROOMS = sorted({path.parent for path in TESTS.glob("*/**/test_*.py")} - {TESTS / "system"})


def marks_in(tree: ast.AST, *names: str) -> list[ast.Attribute]:
    """Where `pytest.mark.NAME` stands, for any of these names."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in names and ast.unparse(node.value) == "pytest.mark"
    ]


def always_run(source: str) -> bool:
    """Whether a file has a test without a mark of those; rows of a table have theirs inside, and do not count."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark" and marks_in(node, *SELDOM):
            return False
    seldom = tuple(f"pytest.mark.{name}" for name in SELDOM)
    return any(
        not any(ast.unparse(one).startswith(seldom) for one in node.decorator_list)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def test_each_long_test_says_why() -> None:
    """A sentence for whoever asks what runs instead: the one argument of the mark."""
    without = []
    found = 0
    for path in sorted(TESTS.rglob("test_*.py")):
        if "mark.long" not in (source := path.read_text("utf-8")) or path == Path(__file__):
            continue
        tree = ast.parse(source)
        told = [
            node.func
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and len(node.args) == 1 and len(ast.unparse(node.args[0])) > len("'the'")
        ]
        marks = marks_in(tree, "long")
        found += len(marks)
        without += [f"{path.relative_to(TESTS)}:{mark.lineno}" for mark in marks if mark not in told]
    assert found > 20
    assert without == []


@each("room", ROOMS)
def test_each_room_has_tests_that_always_run(room: Path) -> None:
    """A promise is asked by `make test`, too, if seldom as often as by `make test-long`."""
    assert any(always_run(path.read_text("utf-8")) for path in room.glob("test_*.py"))


@pytest.mark.parametrize(
    ("source", "is_one"),
    [
        ("def test_a(): pass", True),
        ("import pytest\npytestmark = pytest.mark.long('why')\ndef test_a(): pass", False),
        ("@pytest.mark.long('why')\ndef test_a(): pass", False),
        ("@pytest.mark.long('why')\n@pytest.mark.parametrize('a', [1])\ndef test_a(a): pass", False),
        ("@pytest.mark.parametrize('a', [pytest.param(1, marks=pytest.mark.long('why'))])\ndef test_a(a): pass", True),
        ("@pytest.mark.fault\ndef test_a(): pass\ndef test_b(): pass", True),
        ("def help(): pass", False),
    ],
)
def test_tests_that_always_run_are_known(source: str, *, is_one: bool) -> None:
    """By their marks and those of their file."""
    assert always_run(source) == is_one
