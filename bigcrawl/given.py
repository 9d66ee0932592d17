"""Checks of values that users pass in, made at once, so that a traceback or log line shows the place."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np


def whole_number(value: Any) -> int:
    """Return a whole number (an int, a bool, a float without a fraction, a numpy number) as an int.

    Raises:
        ValueError: it is not a whole number; the text says what it is, worded to follow its name.
    """
    if type(value) is int:
        return value
    number = float(value) if isinstance(value, Real | np.bool_) else math.nan
    if number.is_integer():
        return int(value)
    raise ValueError(f"is {value!r}: it must be a whole number")


def odd_name(arguments: dict[Any, Any] | None) -> object | None:
    """Return the first key that cannot be the name of a function's argument, if there is one."""
    return next((name for name in arguments if not isinstance(name, str)), None) if arguments else None


def no_method(path: str, function: object) -> str:
    """Return what to write instead of a function that exists in this process only, worded to follow `path`."""
    return (
        f"is {function!r}, which other processes cannot find: make it a method of the spider and write "
        f"{path}=self.NAME; what a lambda or a nested function has of its surroundings goes into cb_kwargs"
    )
