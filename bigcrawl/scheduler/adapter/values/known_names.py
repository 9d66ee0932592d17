"""Classes and functions by module and name, for stored values. A look-up imports nothing."""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    Named = type[Any] | FunctionType

_modules_of_the_start: frozenset[str] = frozenset()
OWN: Final = __name__.partition(".")[0]


def record_modules() -> None:
    global _modules_of_the_start  # noqa: PLW0603 - as sys.modules is
    _modules_of_the_start = frozenset(sys.modules)


def name_of(named: Named) -> tuple[str, str]:
    """Return the module and name of a class or function, or raise TypeError if other processes cannot find it."""
    module, name = _own_name(named)
    if find_named(module, name) is not named:
        what = "class" if isinstance(named, type) else "function"
        raise TypeError(f"cannot store {named.__name__}: move the {what} to the top level of its module")
    if _modules_of_the_start and module not in _modules_of_the_start:
        raise TypeError(
            f"cannot store {named.__name__}: its module {module} was imported after the spider was opened; import it "
            f"at the top of the spider's own, so that every node has it"
        )
    return module, name


def find_named(module: str, name: str) -> Named | None:
    """Return the class or function that an imported module itself defines under this name."""
    place = sys.modules.get(module)
    # Not by `getattr`: a module's `__getattr__`, or a lazy module, may import more.
    is_module = issubclass(type(place), ModuleType)
    there: Any = object.__getattribute__(place, "__dict__").get(name) if is_module else None
    return there if issubclass(type(there), type | FunctionType) and _own_name(there) == (module, name) else None


def class_found(module: str, name: str) -> type[Any] | None:
    there = find_named(module, name)
    return there if isinstance(there, type) else None


def is_within(module: str, packages: Collection[str]) -> bool:
    return module.partition(".")[0] in packages or any(
        module == package or module.startswith(f"{package}.") for package in packages
    )


def _own_name(named: Named) -> tuple[str, str]:
    get = type.__getattribute__ if isinstance(named, type) else object.__getattribute__  # no code of a metaclass
    return str(get(named, "__module__")), str(get(named, "__qualname__"))


def packages_of(modules: Iterable[str]) -> frozenset[str]:
    return frozenset(module.partition(".")[0] for module in modules) - {OWN}
