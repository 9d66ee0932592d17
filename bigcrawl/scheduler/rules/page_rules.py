"""Rules that drop pages by their servers' answers (docs/guide/filters.md).

Without a declared media type, the first bytes of the body decide. Answers with a Location pass.

Source: Nexplorer §2.2 (content type, reserved strings).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.records.unread import LANGUAGE, STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bigcrawl.config import FilterConfig
    from bigcrawl.scheduler.rules.languages import Languages

TEXT_BYTES: Final = 1 << 20

_STRINGS_MAX, _STRING_CHARACTERS_MAX = 100, 200
_is_media_type = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/(?:\*|[a-z0-9][a-z0-9!#$&^_.+-]*)").fullmatch


class PageRules:
    def __init__(self, config: FilterConfig) -> None:
        self._types = frozenset(map(_media_type, config.media_types))
        self._strings = _strings(config.strings)
        self._languages = _languages_of(config.languages) if config.languages else None
        self._takes = lru_cache(1_024)(self._looks_up)

    def __bool__(self) -> bool:
        return bool(self._types or self._strings or self._languages)

    def takes(self, media_type: str) -> bool:
        return not self._types or self._takes(media_type)

    def against(self, text: Callable[[int], str]) -> str:
        """Return the rule that drops a page, or an empty string; `text` returns the page's first n bytes as text."""
        if not self._strings and self._languages is None:
            return ""
        page = text(TEXT_BYTES)
        if self._strings:
            folded = page.lower()
            for string in self._strings:
                if string in folded:
                    return STRING
        return LANGUAGE if self._languages is not None and not self._languages.has(page) else ""

    def _looks_up(self, media_type: str) -> bool:
        return media_type in self._types or f"{media_type.partition('/')[0]}/*" in self._types


def _media_type(written: str) -> str:
    found = written.lower()
    if not _is_media_type(found):
        raise ConfigError(
            f"BIGCRAWL_FILTER_MEDIA_TYPES has {written!r}; must be a type such as text/html, or all of a kind, image/*"
        )
    return found


def _strings(written: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(string.lower() for string in written))
    if len(found) > _STRINGS_MAX:
        raise ConfigError(f"BIGCRAWL_FILTER_STRINGS has {len(found)} texts; {_STRINGS_MAX} may be")
    if longest := max((string for string in found if len(string) > _STRING_CHARACTERS_MAX), default="", key=len):
        raise ConfigError(
            f"BIGCRAWL_FILTER_STRINGS has a text of {len(longest)} characters, {longest[:40]!r}...; "
            f"{_STRING_CHARACTERS_MAX} may be"
        )
    return found


def _languages_of(names: tuple[str, ...]) -> Languages:
    from bigcrawl.scheduler.rules.languages import Languages

    return Languages(names)
