"""Classes and functions by module and name, as stored values name them. Looking one up imports nothing."""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    Named = type[Any] | FunctionType

_modules_of_the_start: frozenset[str] = frozenset()
OWN: Final = __name__.partition(".")[0]


def note_modules() -> None:
    """From now on, refuse what modules that are imported later define: other nodes may not have them."""
    global _modules_of_the_start  # noqa: PLW0603 - as sys.modules is
    _modules_of_the_start = frozenset(sys.modules)


def name_of(named: Named) -> tuple[str, str]:
    """Return the module and name by which other processes find a class or function.

    Raises:
        TypeError: they do not find it.
    """
    module, name = named.__module__, named.__qualname__
    if found(module, name) is not named:
        what = "class" if isinstance(named, type) else "function"
        raise TypeError(f"cannot store {named.__name__}: move the {what} to the top level of its module")
    if _modules_of_the_start and module not in _modules_of_the_start:
        raise TypeError(
            f"cannot store {named.__name__}: its module {module} was imported after the spider was opened; import it "
            f"at the top of the spider's own, so that every node has it"
        )
    return module, name


def found(module: str, name: str) -> Named | None:
    """Return what a module that is imported defines by this name; None if it is neither a class nor a function."""
    place = sys.modules.get(module)
    # Not by `getattr`: a module's own `__getattr__`, or a lazy module, may import what it is asked for.
    there = object.__getattribute__(place, "__dict__").get(name) if issubclass(type(place), ModuleType) else None
    return there if isinstance(there, type | FunctionType) else None


def class_found(module: str, name: str) -> type[Any] | None:
    """Return the class that a module that is imported defines by this name."""
    there = found(module, name)
    return there if isinstance(there, type) else None


def is_within(module: str, packages: Iterable[str]) -> bool:
    """Whether a module is one of some packages, or lies in one of them."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def packages_of(modules: Iterable[str]) -> frozenset[str]:
    """Return the packages of a project: the outermost of each of its modules, without bigcrawl."""
    return frozenset(module.partition(".")[0] for module in modules) - {OWN}
