"""Rules that drop pages by their servers' answers, or by those to a HEAD before the fetch (docs/guide/filters.md).

Without a declared media type, the first bytes of the body decide. Answers with a Location pass. Only an answer to a
HEAD with status 200 drops a URL. After any other result of a HEAD, the URL is fetched in its next turn.

Source: Nexplorer §2.2 (content type, reserved strings, HEAD before files of some kinds).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from w3lib.encoding import resolve_encoding

from bigcrawl.config import FilterConfig
from bigcrawl.exceptions import ConfigError
from bigcrawl.media_types import type_told
from bigcrawl.politeness.robots_match import DISALLOW, RobotsMatcher
from bigcrawl.scheduler.records.outcomes import LANGUAGE, MEDIA_TYPE, SIZE, STRING
from bigcrawl.scheduler.rules.budget_rules import parse_rule_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bigcrawl.config import Config
    from bigcrawl.scheduler.rules.languages import Languages

KINDS: Final = "kinds"
ELIMINATE: Final = "eliminate"
CHARSETS: Final = "charsets"
SITE_LIMITS: Final = (KINDS, ELIMINATE, CHARSETS)
"""What a rule set by hand says about the pages of a site."""

TEXT_BYTES: Final = 1 << 20

_STRINGS_MAX, _STRING_CHARACTERS_MAX = 100, 200
_is_media_type = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/(?:\*|[a-z0-9][a-z0-9!#$&^_.+-]*)").fullmatch

_OK: Final = 200
_PATTERNS_MAX: Final = 1_000
_is_pattern = re.compile(r"[/*]\S*").fullmatch
_read_length = re.compile(rb"[0-9]{1,18}").fullmatch


class PageRules:
    def __init__(self, config: FilterConfig, where: str = "", charsets: Iterable[str] = ()) -> None:
        """Error messages call the source of the values `where`; empty for the settings."""
        self._types = frozenset(_media_type(one, where or "BIGCRAWL_FILTER_MEDIA_TYPES") for one in config.media_types)
        self._strings = _parse_strings(config.strings, where or "BIGCRAWL_FILTER_STRINGS")
        self._charsets = frozenset(_charset(one, where) for one in charsets)
        self._languages = _languages_of(config.languages) if config.languages else None
        self._takes = lru_cache(1_024)(self._looks_up)

    def __bool__(self) -> bool:
        return bool(self._types or self._strings or self._languages)

    def accepts_type(self, media_type: str) -> bool:
        return not self._types or self._takes(media_type)

    def accepts_charset(self, charset: str) -> bool:
        """Return whether pages of a charset are accepted; `charset` is any of its names."""
        return resolve_encoding(charset) in self._charsets

    def dropping_rule(self, text: Callable[[int], str]) -> str:
        """Return the rule that drops a page, or an empty string; `text` returns the page's first n bytes as text."""
        if not self._strings and self._languages is None:
            return ""
        page = text(TEXT_BYTES)
        if self._strings:
            folded = page.lower()
            for string in self._strings:
                if string in folded:
                    return STRING
        return LANGUAGE if self._languages is not None and not self._languages.is_wanted(page) else ""

    def _looks_up(self, media_type: str) -> bool:
        return media_type in self._types or f"{media_type.partition('/')[0]}/*" in self._types


def parse_page_rules(
    written: Mapping[str, Mapping[str, object]], where: str = "BIGCRAWL_PAGE_RULES"
) -> dict[str, dict[str, PageRules]]:
    """Return sites' rules for pages, by normalised name; each is a filter of its own."""
    rules: dict[str, dict[str, PageRules]] = {}
    for name, limits in written.items():
        normal, here = parse_rule_name(name, where), where if "line" in where else f"{where}[{name!r}]"
        if normal in rules:
            raise ConfigError(f"{where} has {normal!r} twice, in two spellings; join them")
        rules[normal] = {limit: _of_site(limit, value, here) for limit, value in limits.items()}
    return rules


def _of_site(limit: str, value: object, where: str) -> PageRules:
    words = value.split(",") if isinstance(value, str) else value
    if limit not in SITE_LIMITS:
        raise ConfigError(f"{where} has an unknown {limit!r}; must be one of {', '.join(SITE_LIMITS)}")
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{where}: {limit} is {value!r}; must be a text with commas, or a list of texts")
    texts = tuple(filter(None, (word.strip() for word in words)))
    nothing = FilterConfig()
    if limit == KINDS:
        return PageRules(nothing.replace(media_types=texts), f"{where}: {KINDS}")
    if limit == CHARSETS:
        return PageRules(nothing, f"{where}: {CHARSETS}", texts)
    return PageRules(nothing.replace(strings=texts), f"{where}: {ELIMINATE}")


def _media_type(written: str, where: str) -> str:
    found = written.lower()
    if not _is_media_type(found):
        raise ConfigError(f"{where} has {written!r}; must be a type such as text/html, or all of a kind, image/*")
    return found


def _charset(written: str, where: str) -> str:
    found = resolve_encoding(written)
    if found is None:
        raise ConfigError(f"{where} has {written!r}; must be a charset such as utf-8 or euc-jp")
    return found


def _parse_strings(written: Iterable[str], where: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(string.lower() for string in written))
    if len(found) > _STRINGS_MAX:
        raise ConfigError(f"{where} has {len(found)} texts; at most {_STRINGS_MAX} are allowed")
    if longest := max((string for string in found if len(string) > _STRING_CHARACTERS_MAX), default="", key=len):
        raise ConfigError(
            f"{where} has a text of {len(longest)} characters, {longest[:40]!r}...; "
            f"at most {_STRING_CHARACTERS_MAX} are allowed"
        )
    return found


def _languages_of(names: tuple[str, ...]) -> Languages:
    from bigcrawl.scheduler.rules.languages import Languages

    return Languages(names)


class HeadRules:
    """The current rules; false if no URL gets a HEAD."""

    def __init__(self, config: Config) -> None:
        self._sought = RobotsMatcher(_rule_lines(config.filters.head_first)) if config.filters.head_first else None
        self._types = PageRules(config.filters.replace(strings=(), languages=()))
        self._bytes_max = 0 if config.limits.truncates else config.limits.answer_bytes_max

    def __bool__(self) -> bool:
        return self._sought is not None

    def needs_head(self, url: str) -> bool:
        return self._sought is not None and not self._sought.is_allowed(url[url.index("/", 8) :])

    def dropping_rule(self, status: int | None, content_type: bytes, content_length: bytes) -> str:
        """Return the rule that drops a URL, given the answer to its HEAD; empty if none does."""
        if status != _OK:
            return ""
        told = type_told((content_type,))
        if told and not self._types.accepts_type(told):
            return MEDIA_TYPE
        is_number = _read_length(content_length.strip())
        return SIZE if is_number and int(content_length) > self._bytes_max > 0 else ""


def _rule_lines(patterns: Iterable[str]) -> list[str]:
    found = [pattern.strip() for pattern in patterns]
    for pattern in found:
        if not _is_pattern(pattern):
            raise ConfigError(
                f"BIGCRAWL_HEAD_FIRST has {pattern!r}; must be a pattern of paths as in robots.txt, such as /*.pdf$ or "
                "/download/"
            )
    if len(found) > _PATTERNS_MAX:
        raise ConfigError(f"BIGCRAWL_HEAD_FIRST has {len(found):,} patterns; at most {_PATTERNS_MAX:,} are allowed")
    return [DISALLOW + pattern for pattern in found]
