"""Types that a project or plug-in teaches the codec: a pair of functions by a class's dotted name.

The first turns an object into storable values, the second one back. They come from BIGCRAWL_STORED_TYPES, from entry
points of installed packages, and from here. Stored values only name the class.
"""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.exceptions import ConfigError
from bigcrawl.given import import_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

GROUP: Final = "bigcrawl.stored_types"
_SETTING: Final = "BIGCRAWL_STORED_TYPES"


class TaughtType(NamedTuple):
    to_plain: Callable[[Any], Any]
    from_plain: Callable[[Any], Any]


def taught_types(entries: Iterable[str]) -> dict[str, TaughtType]:
    """Return the types by class: the setting's entries take precedence, then packages', then ours."""
    taught = _OURS | _taught_by_packages()
    for entry in entries:
        name, sign, path = map(str.strip, entry.partition("="))
        if not sign or "." not in name or "." not in path:
            row = "for example shop.money.Price=shop.stored.PRICE"
            raise ConfigError(f"{_SETTING} has {entry!r}; must be a class, =, and a pair of functions, {row}")
        taught[name] = _import_pair(_SETTING, path)
    return taught


@cache  # the files of all installed packages are read
def _taught_by_packages() -> dict[str, TaughtType]:
    return {
        point.name: _import_pair(f"the entry point {point.name} of {GROUP}", point.value.replace(":", "."))
        for point in entry_points(group=GROUP)
    }


def _import_pair(where: str, path: str) -> TaughtType:
    pair = import_object(where, path)
    if not (isinstance(pair, tuple) and len(pair) == 2 and all(map(callable, pair))):
        raise ConfigError(f"{where} names {path}, a {type(pair).__name__}; must be a tuple of two functions")
    return TaughtType(*pair)


def dotted_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _page_method(plain: Any) -> Any:
    method, args, kwargs = plain
    return importlib.import_module("scrapy_playwright.page").PageMethod(method, *args, **kwargs)


_OURS: Final = {
    "scrapy_playwright.page.PageMethod": TaughtType(lambda page: [page.method, page.args, page.kwargs], _page_method),
}
