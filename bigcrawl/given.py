"""Loads annexes and objects that settings name, and checks users' values early, where an error shows their place."""

from __future__ import annotations

import math
from importlib import import_module
from importlib.util import find_spec
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from bigcrawl.exceptions import ConfigError, MissingAnnexError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def whole_number(value: Any) -> int:
    """Return any whole number, even numpy's, as an int; or raise ValueError with text that follows its name."""
    if type(value) is int:
        return value
    number = float(value) if isinstance(value, Real | np.bool_) else math.nan
    if number.is_integer():
        return int(value)
    raise ValueError(f"is {value!r}: it must be a whole number")


def import_object(setting: str, path: str) -> Any:
    """Return the object at a dotted path; importing it runs the project's code. Raises ConfigError."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except Exception as error:
        raise ConfigError(f"{setting} is {path!r}, which cannot be imported: {error!r}") from error


def as_callable(setting: str, said: object, found: object) -> Callable[..., Any]:
    """Return `found`, or an instance of it if it is a class; `said` is the setting's text. Raises ConfigError."""
    if isinstance(found, type):
        try:
            found = found()
        except Exception as error:
            raise ConfigError(
                f"{setting} is {said!r}, which raised an error when it was instantiated: {error!r}"
            ) from error
    if not callable(found):
        raise ConfigError(
            f"{setting} is {said!r}, a {type(found).__name__}; must be a function or a class of callables"
        )
    return found


def odd_name(arguments: dict[Any, Any] | None) -> object | None:
    """Return the first key that cannot be the name of a function's argument, if any."""
    return next((name for name in arguments if not isinstance(name, str)), None) if arguments else None


def no_method(path: str, function: object) -> str:
    """Return advice about a function that other processes cannot find, as text that follows `path`."""
    return (
        f"is {function!r}, which other processes cannot find: make it a method of the spider and write "
        f"{path}=self.NAME; what a lambda or a nested function has of its surroundings goes into cb_kwargs"
    )


def has_annex(module: str) -> bool:
    return find_spec(module.partition(".")[0]) is not None


def load_module(name: str) -> ModuleType:
    """Import a module; raise MissingAnnexError if its annex is not installed."""
    if not has_annex(name):
        raise MissingAnnexError(name.partition(".")[0])
    return import_module(name)
