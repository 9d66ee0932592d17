from __future__ import annotations

import ast

import pytest

from scripts.mutation.changes import changes


def shown(source: str) -> list[tuple[str, str]]:
    """The code before and after each change."""
    return [(change.before, change.after) for change in changes(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = b < c", [("b < c", "b <= c"), ("b < c", "b >= c")]),
        ("a = b is not c", [("b is not c", "b is c")]),
        ("a = b in c == d", [("b in c == d", "b not in c == d"), ("b in c == d", "b in c != d")]),
        ("a = b + c", [("b + c", "b - c")]),
        ("a //= b", [("a //= b", "a *= b"), ("a //= b", "pass")]),
        ("a = b and c", [("b and c", "b or c")]),
        ("a = not b", [("not b", "b")]),
        ("a = -b", [("-b", "b")]),
        ("a = 7", [("7", "8"), ("7", "6")]),
        ("a = 0.5", [("0.5", "1.5"), ("0.5", "-0.5")]),
        ("a = True", [("True", "False")]),
        ("a = 'text', None", []),
        ("if a: b = c", [("if a:", "if not a:")]),
        ("while a: b = c", [("while a:", "while not a:")]),
        ("a = b if c else d", [("b if c else d", "b if not c else d")]),
        ("for a in b: c = a", [("for a in b:", "for a in ():")]),
        (
            "a = [b for b in c if d]",
            [(" for b in c if d", " for b in () if d"), (" for b in c if d", " for b in c")],
        ),
        ("a(b)", [("a(b)", "pass")]),
        ("a.b = c", [("a.b = c", "pass")]),
        ("raise a", [("raise a", "pass")]),
        ("del a", [("del a", "pass")]),
        ("for a in b:\n    break", [("for a in b:", "for a in ():"), ("break", "continue")]),
    ],
)  # fmt: skip
def test_each_kind_of_code_has_its_changes(source: str, expected: list[tuple[str, str]]) -> None:
    """A place has one or two changes of a kind. A name that is assigned stays: who reads it would notice."""
    assert shown(source) == expected


def test_an_exception_is_caught_no_longer() -> None:
    """A handler of some exception handles none; one of all exceptions has no change."""
    assert shown("try: a = b\nexcept C: d = e") == [("except C:", "except ():")]
    assert shown("try: a = b\nexcept: d = e") == []


@pytest.mark.parametrize(
    "source",
    [
        "'''Words.'''",
        "def f(a: int | None) -> int | None: return a",
        "class A:\n    a: int | None",
        "if TYPE_CHECKING:\n    import a",
        "_log.info('%d', 1)",
        "SIZE: Final = 1 << 15",
        "_SIZES = {1, 2}",
        "class A:\n    first_ms: int = 10_000",
        "@dataclass(slots=True)\nclass A:\n    a: int",
    ],
)
def test_what_never_runs_and_what_was_chosen_has_no_changes(source: str) -> None:
    """Annotations, imports of type checkers, words, log messages and the numbers of constants stay as they are."""
    assert changes(source) == []


def test_changes_stand_in_the_order_of_lines_and_are_the_module_with_one_difference() -> None:
    """Each text is Python, no two are the same, and none is the module itself."""
    source = "def f(a):\n    if a > 1:\n        g(a)\n    # Why.\n    return a + 1\n"
    found = changes(source)
    assert [change.number for change in found] == sorted(change.number for change in found)
    assert str(found[0]) == "2: a > 1  ->  a >= 1  in  if a > 1:"
    lines = ast.unparse(ast.parse(source)).split("\n")
    for change in found:
        assert sum(line != own for line, own in zip(change.text.split("\n"), lines, strict=True)) == 1
    assert len({change.text for change in found}) == len(found)


def test_two_ways_to_one_text_are_one_change() -> None:
    """A comparison changed and its condition negated would be the same mistake twice."""
    assert shown("if a == b: c = d") == [("a == b", "a != b")]
