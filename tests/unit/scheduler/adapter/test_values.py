"""What a stored value may be, and what a message may do to the process that reads it."""

from __future__ import annotations

import dataclasses
import sys
from types import ModuleType

import msgpack
import pytest

from bigcrawl.scheduler.adapter import values
from bigcrawl.scheduler.adapter.values import packed, unpacked


@dataclasses.dataclass
class Here:
    name: str = ""


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> type:
    """A dataclass of a module that was imported when the crawl had begun."""
    monkeypatch.setattr(values, "_modules_of_the_start", frozenset())
    values.note_modules()
    module = ModuleType("late_module")
    late = dataclasses.make_dataclass("Late", ["name"])
    late.__module__ = module.__name__
    module.Late = late  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return late


def test_class_that_another_node_may_not_have_imported_is_refused(late: type) -> None:
    """Here it could be read again; after kill -9, by the next process, it could not, and the URL would be lost."""
    with pytest.raises(TypeError, match="late_module was imported after the spider was opened; import it"):
        packed(late("x"))
    assert unpacked(packed(Here("x"))) == Here("x")
    values.note_modules()
    assert unpacked(packed(late("x"))) == late("x")


@pytest.mark.parametrize(
    ("code", "module", "name", "content"),
    [
        (5, "decimal", "Decimal", {}),
        (5, "enum", "Enum", {}),
        (10, __name__, "Here", "name"),
        (5, "collections", "OrderedDict", {}),
        (10, "enum", "Flag", 1 << 70),
        (10, "signal", "Signals", "SIGNONE"),
        (10, "signal", "Signals", 9),
        (5, __name__, "Here", {"name": "x", "__class__": "y"}),
        (5, __name__, "Here", ["x"]),
        (5, __name__, "Here.name", {}),
    ],
)
def test_message_makes_nothing_but_records_and_members(code: int, module: str, name: str, content: object) -> None:
    """Of any other class, and of fields and members that a class has not, nothing is made."""
    with pytest.raises((ValueError, OverflowError)):
        unpacked(msgpack.packb(msgpack.ExtType(code, msgpack.packb([module, name, content]))))


def test_message_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a module that is there, nor what a module would import for whoever asks."""
    asked: list[str] = []
    module = ModuleType("lazy_module")
    module.__getattr__ = asked.append  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "lazy_module", module)
    with pytest.raises(ValueError, match="lazy_module"):
        unpacked(msgpack.packb(msgpack.ExtType(5, msgpack.packb(["lazy_module", "Thing", {}]))))
    assert asked == []
    assert "antigravity" not in sys.modules
    with pytest.raises(ValueError, match="antigravity"):
        unpacked(msgpack.packb(msgpack.ExtType(5, msgpack.packb(["antigravity", "Thing", {}]))))
    assert "antigravity" not in sys.modules
