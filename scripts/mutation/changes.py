"""The small changes of a module that its tests are expected to notice.

Each stands for a mistake that a programmer makes: a bound off by one, a condition the wrong way round, a call left out.
A place has one or two changes of a kind, because tests that notice `-` for `+` notice `*` too. What never runs has
none: annotations, and what only type checkers import. Nor have decorators and log messages, nor the numbers of
constants and the defaults of fields: somebody chose them, and a test that repeats them checks nothing.

To add a kind: a function from a node to its replacements, and a line in `_KINDS`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LOGGERS: Final = ("log", "logger")
_NEVER_CHANGED: Final = ("annotation", "returns", "decorator_list")

# By order: with the bound moved by one, and the other way round.
_COMPARED_BY: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COMPUTED_BY: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}


@dataclass(frozen=True, slots=True)
class Change:
    """One change: the number of its line, that line, the first line of the code before and after, the whole module."""

    number: int
    line: str
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"{self.number}: {self.before}  ->  {self.after}  in  {self.line}"


def changes(source: str) -> list[Change]:
    """All changes of a module, in the order of its lines. Their texts have no comments.

    Raises:
        SyntaxError: `source` is not Python.

    Cost: a text of the module for each change; a module of a hundred lines has some hundred.
    """
    tree = ast.parse(source)
    lines = ["", *source.splitlines()]
    found: dict[str, Change] = {}
    for node, put in _places(tree):
        for replacement in _replacements(node):
            put(replacement)
            text = ast.unparse(tree)
            put(node)
            number = _line_number(node)
            before, after = _first_line(node), _first_line(replacement)
            found.setdefault(text, Change(number, lines[number].strip(), before, after, text))
    found.pop(ast.unparse(tree), None)
    return sorted(found.values(), key=lambda change: change.number)


def _places(parent: ast.AST) -> Iterator[tuple[ast.AST, Callable[[ast.AST], None]]]:
    """All nodes below one, each with what puts another in its place; without what never runs and what only logs."""
    for name, value in ast.iter_fields(parent):
        if name in _NEVER_CHANGED:
            continue
        if isinstance(value, list):
            for index, child in enumerate(value):
                if isinstance(child, ast.AST) and not _is_left_out(child):
                    yield child, _item_setter(value, index)
                    yield from _places(child)
        elif isinstance(value, ast.AST):
            yield value, _field_setter(parent, name)
            yield from _places(value)


def _item_setter(values: list[Any], index: int) -> Callable[[ast.AST], None]:
    return lambda node: values.__setitem__(index, node)


def _field_setter(parent: ast.AST, name: str) -> Callable[[ast.AST], None]:
    return lambda node: setattr(parent, name, node)


def _is_left_out(node: ast.AST) -> bool:
    match node:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]) if name.isupper():
            return True
        case ast.AnnAssign(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name.strip("_").lower() in _LOGGERS
    return False


def _line_number(node: ast.AST) -> int:
    return cast("int", node.target.lineno if isinstance(node, ast.comprehension) else getattr(node, "lineno", 0))


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    for kinds, replace in _KINDS:
        if isinstance(node, kinds):
            yield from replace(node)


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    """A copy of a node with some of its fields replaced."""
    return ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), **fields}), node)


def _compared(node: ast.Compare) -> Iterator[ast.AST]:
    for index, op in enumerate(node.ops):
        for other in _COMPARED_BY[type(op)]:
            yield _with(node, ops=[*node.ops[:index], other(), *node.ops[index + 1 :]])


def _computed(node: ast.BinOp | ast.AugAssign) -> Iterator[ast.AST]:
    if other := _COMPUTED_BY.get(type(node.op)):
        yield _with(node, op=other())


def _joined(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield _with(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())


def _without_sign(node: ast.UnaryOp) -> Iterator[ast.AST]:
    yield node.operand


def _other_value(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)


def _negated(node: ast.If | ast.While | ast.IfExp) -> Iterator[ast.AST]:
    if not isinstance(node.test, ast.Compare | ast.UnaryOp):  # whose own changes say the same
        yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))


def _never(node: ast.For | ast.AsyncFor | ast.comprehension) -> Iterator[ast.AST]:
    yield _with(node, iter=ast.Tuple([], ast.Load()))


def _without_conditions(node: ast.comprehension) -> Iterator[ast.AST]:
    if node.ifs:
        yield _with(node, ifs=[])


def _uncaught(node: ast.ExceptHandler) -> Iterator[ast.AST]:
    if node.type is not None:
        yield _with(node, type=ast.Tuple([], ast.Load()))


def _left_out(node: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
        return  # whoever reads the name would notice
    yield ast.Pass()


def _other_jump(node: ast.Break | ast.Continue) -> Iterator[ast.AST]:
    yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()


_KINDS: Final = cast(
    "tuple[tuple[type[ast.AST] | tuple[type[ast.AST], ...], Callable[[ast.AST], Iterator[ast.AST]]], ...]",
    (
        (ast.Compare, _compared),
        ((ast.BinOp, ast.AugAssign), _computed),
        (ast.BoolOp, _joined),
        (ast.UnaryOp, _without_sign),
        (ast.Constant, _other_value),
        ((ast.If, ast.While, ast.IfExp), _negated),
        ((ast.For, ast.AsyncFor, ast.comprehension), _never),
        (ast.comprehension, _without_conditions),
        (ast.ExceptHandler, _uncaught),
        ((ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Raise), _left_out),
        ((ast.Break, ast.Continue), _other_jump),
    ),
)
