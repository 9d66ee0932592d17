"""Loads objects of annexes: packages beside bigcrawl that an installation may lack (docs/decisions/0207)."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import MissingAnnexError

if TYPE_CHECKING:
    from types import ModuleType


def has_annex(package: str) -> bool:
    return find_spec(package) is not None


def load(name: str) -> Any:
    """Return an object by its dotted name; raise MissingAnnexError if its annex is missing."""
    module, _, attribute = name.rpartition(".")
    return getattr(load_module(module), attribute)


def load_module(name: str) -> ModuleType:
    package = name.partition(".")[0]
    if not has_annex(package):
        raise MissingAnnexError(package)
    return import_module(name)
