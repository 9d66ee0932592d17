"""Which URLs are asked by HEAD before they are fetched, and which answers drop them.

Only an answer with status 200 drops a URL. After any other result of a HEAD, the URL is fetched in its next turn.

Source: Nexplorer §2.2 (HEAD before files of some kinds).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.media_types import type_told
from bigcrawl.politeness.robots_match import DISALLOW, RobotsMatcher
from bigcrawl.scheduler.records.unread import MEDIA_TYPE, SIZE
from bigcrawl.scheduler.rules.page_rules import PageRules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.config import Config

_OK: Final = 200
_PATTERNS_MAX: Final = 1_000
_is_pattern = re.compile(r"[/*]\S*").fullmatch
_read_length = re.compile(rb"[0-9]{1,18}").fullmatch


class HeadRules:
    """The rules in force; false if no URL is asked by HEAD."""

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
        raise ConfigError(f"BIGCRAWL_HEAD_FIRST has {len(found):,} patterns; {_PATTERNS_MAX:,} may be")
    return [DISALLOW + pattern for pattern in found]
