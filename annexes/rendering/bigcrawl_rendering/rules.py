"""The operator's rules: which pages are rendered, and hosts from which pages load nothing."""

from __future__ import annotations

import re
from fnmatch import translate
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl_rendering.detection import ENOUGH, Verdict, judge_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

RULE: Final = Verdict("rule")
_host_in_line = re.compile(
    r"(?:(?:0\.0\.0\.0|127\.0\.0\.1|::1?)\s+|\|\||\*\.)?([a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\^?"
).fullmatch


class PageChoice:
    """Chooses pages to render by URL patterns, and with `detects` also by their bytes."""

    def __init__(self, always: Iterable[str], never: Iterable[str], *, detects: bool) -> None:
        self._always = _any_of("BIGCRAWL_RENDER_ALWAYS", always)
        self._never = _any_of("BIGCRAWL_RENDER_NEVER", never)
        self._detects = detects

    def verdict_on(self, url: str, page: Callable[[], str]) -> Verdict:
        """Return why a page is rendered; `page` returns its text, and is called only if the URL does not decide."""
        if self._never(url):
            return ENOUGH
        if self._always(url):
            return RULE
        return judge_page(page()) if self._detects else ENOUGH


class BlockedHosts:
    def __init__(self, lines: Iterable[str]) -> None:
        self._hosts = frozenset(filter(None, map(_host_of_line, lines)))

    def __len__(self) -> int:
        return len(self._hosts)

    def has(self, host: str) -> bool:
        """Return whether a host or a domain above it is blocked."""
        parts = host.split(".")
        return bool(self._hosts) and any(".".join(parts[at:]) in self._hosts for at in range(len(parts)))


def _any_of(setting: str, patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return a check whether a URL matches one of the patterns, at a cost that no URL can raise."""
    written = tuple(patterns)
    for pattern in written:
        if not re.match(r"(?:https?|\*)[:*]?", pattern):
            raise ConfigError(f"{setting} has {pattern!r}; a pattern is a URL with *, such as https://app.example/*")
    if not written:
        return lambda _url: False
    # `?` and `[` stand in many URLs, and mean themselves.
    texts = (translate(re.sub(r"[?\[]", r"[\g<0>]", pattern)) for pattern in written)
    match = re.compile("|".join(texts)).match
    return lambda url: match(url) is not None


def _host_of_line(line: str) -> str:
    """Return the host on a line of a list; empty for other lines, such as rules for elements."""
    found = _host_in_line(line.strip().lower())
    return found[1] if found else ""
