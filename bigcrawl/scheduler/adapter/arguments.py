"""The arguments that a spider was started with, which travel with its crawl (docs/decisions/0199)."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Spider
    from scrapy.crawler import Crawler

MAY_DIFFER: Final = "changeable_arguments"
"""The attribute in which a spider's class lists arguments that may change, as they only add seeds or move limits."""

_ALWAYS: Final = frozenset({"start_urls", "allowed_domains"})
_STARTS: Final = ("crawl", "crawl_async")
_SHOWN: Final = 60  # characters of a value; of a longer one, a digest is kept
_SECRET: Final = re.compile("passw|passphrase|secret|token|api_?key|credential", re.IGNORECASE)
"""Matches names of arguments that may be secrets: these may always differ, and are stored nowhere."""

_noted: WeakKeyDictionary[Crawler, Mapping[str, str]] = WeakKeyDictionary()


def record_arguments(crawler: Crawler) -> None:
    """Take the spider's arguments from the call of `crawler.crawl(...)` under way, because nothing else has them.

    The spider's attributes prove nothing: a random id or the date may be among them.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name in _STARTS and frame.f_locals.get("self") is crawler:
            given = frame.f_locals
            _noted[crawler] = fixed_arguments(crawler.spidercls, given.get("args", ()), given.get("kwargs", {}))
            return
        frame = frame.f_back


def arguments_of(crawler: Crawler) -> Mapping[str, str] | None:
    """Return the arguments that all runs of the crawl must share, as text; None if unknown."""
    return _noted.get(crawler)


def fixed_arguments(spider: type[Spider], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, str]:
    named = [vars(base).get(MAY_DIFFER, ()) for base in spider.__mro__]
    may_differ = _ALWAYS.union(*([names] if isinstance(names, str) else names for names in named))
    given = {str(place): value for place, value in enumerate(args, 1)} | dict(kwargs)
    return {
        name: _argument_text(value)
        for name, value in sorted(given.items())
        if name not in may_differ and not name.startswith("_") and not _SECRET.search(name)
    }


def _argument_text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=_plain_value)
    if len(text) > _SHOWN or ("@" in text and "//" in text):  # it may be a URL with a password
        return f"sha256:{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"
    return text


def _plain_value(value: object) -> object:
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"
