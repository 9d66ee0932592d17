"""What a user hands over, checked where he hands it over: there a traceback, or a log line, shows whose it is."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np


def whole_number(value: Any) -> int:
    """Return a whole number as an int: bools, floats without a fraction, numpy's numbers.

    Raises:
        ValueError: it is none; the text says what it is, to stand behind its name.
    """
    if type(value) is int:
        return value
    number = float(value) if isinstance(value, Real | np.bool_) else math.nan
    if number.is_integer():
        return int(value)
    raise ValueError(f"is {value!r}: it must be a whole number")


def odd_name(arguments: dict[Any, Any] | None) -> object | None:
    """Return the first key that cannot name an argument of a function, if there is one."""
    return next((name for name in arguments if not isinstance(name, str)), None) if arguments else None


def no_method(path: str, function: object) -> str:
    """Say, to stand behind `path`, what to write instead of a function that only this process has."""
    return (
        f"is {function!r}, which other processes cannot find: make it a method of the spider and write "
        f"{path}=self.NAME; what a lambda or a nested function has of its surroundings goes into cb_kwargs"
    )
