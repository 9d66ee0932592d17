"""Loads annexes: packages beside bigcrawl that an installation may lack (docs/decisions/0207)."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from bigcrawl.exceptions import MissingAnnexError

if TYPE_CHECKING:
    from types import ModuleType


def has_annex(module: str) -> bool:
    return find_spec(module.partition(".")[0]) is not None


def load_module(name: str) -> ModuleType:
    """Import a module; raise MissingAnnexError if its annex is not installed."""
    if not has_annex(name):
        raise MissingAnnexError(name.partition(".")[0])
    return import_module(name)
