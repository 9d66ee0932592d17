"""Types that a project or a plug-in teaches the codec: a pair of functions for each class, by the class's dotted name.

The first function turns an object into values that can be stored, the second one turns those into an object again. A
stored value names the class only. The functions come from BIGCRAWL_STORED_TYPES, from entry points of installed
packages, and from here; nothing else that a stored value names is called.
"""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.exceptions import ConfigError
from bigcrawl.given import imported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

GROUP: Final = "bigcrawl.stored_types"
"""The group of entry points; the name of each is that of a class."""
_SETTING: Final = "BIGCRAWL_STORED_TYPES"


class TaughtType(NamedTuple):
    """How objects of a class are stored."""

    to_plain: Callable[[Any], Any]
    from_plain: Callable[[Any], Any]


def taught_types(entries: Iterable[str]) -> dict[str, TaughtType]:
    """Return the types by class: those of the setting's entries before those of packages before ours.

    Raises:
        ConfigError: an entry is malformed, or names no pair of functions.
    """
    taught = dict(_OURS)
    for point in entry_points(group=GROUP):
        taught[point.name] = _pair(f"the entry point {point.name} of {GROUP}", point.value.replace(":", "."))
    for entry in entries:
        name, sign, path = map(str.strip, entry.partition("="))
        if not sign or "." not in name or "." not in path:
            row = "for example shop.money.Price=shop.stored.PRICE"
            raise ConfigError(f"{_SETTING} has {entry!r}; must be a class, =, and a pair of functions, {row}")
        taught[name] = _pair(_SETTING, path)
    return taught


def _pair(where: str, path: str) -> TaughtType:
    pair = imported(where, path)
    if not (isinstance(pair, tuple) and len(pair) == 2 and all(map(callable, pair))):
        raise ConfigError(f"{where} names {path}, a {type(pair).__name__}; must be a tuple of two functions")
    return TaughtType(*pair)


def dotted_name(kind: type) -> str:
    """Return the name by which a class is taught."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _page_method(plain: Any) -> Any:
    method, args, kwargs = plain
    return importlib.import_module("scrapy_playwright.page").PageMethod(method, *args, **kwargs)


_OURS: Final = {
    "scrapy_playwright.page.PageMethod": TaughtType(lambda page: [page.method, page.args, page.kwargs], _page_method),
}
