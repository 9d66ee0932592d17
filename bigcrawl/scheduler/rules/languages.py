"""Detects the language of a page from the beginning of its text, with py3langid (extra `languages`).

Pages often declare a wrong language or none, so only the text counts. The model takes a second of CPU to load.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SAMPLE: Final = 2_000

SAMPLE_MIN: Final = 60

MARKUP: Final = 1 << 16  # characters of markup that are searched for text
_ENDS: Final = {
    name: re.compile(f"</{name}", re.IGNORECASE).search for name in ("script", "style", "noscript", "template", "svg")
}


class Languages:
    def __init__(self, wanted: Iterable[str]) -> None:
        self._wanted = frozenset(language.lower() for language in wanted)
        self._classify, known = _load_model()
        for language in sorted(self._wanted - known):
            raise ConfigError(
                f"BIGCRAWL_FILTER_LANGUAGES has {language!r}; must be codes as in ISO 639-1, such as en or de, of "
                f"these: {' '.join(sorted(known))}"
            )

    def is_wanted(self, markup: str) -> bool:
        text = visible_text(markup)
        letters = sum(map(str.isalpha, text))
        return letters < SAMPLE_MIN or self._classify(text)[0] in self._wanted


@cache
def _load_model() -> tuple[Callable[[str], Any], frozenset[str]]:
    if find_spec("py3langid") is None:
        raise ConfigError(
            'BIGCRAWL_FILTER_LANGUAGES needs the package py3langid, which is missing: pip install "bigcrawl[languages]"'
        )
    import py3langid

    return py3langid.classify, frozenset(language for language, _ in py3langid.rank(""))


def visible_text(markup: str) -> str:
    """Return the first `SAMPLE` characters of a page's text, with blanks collapsed."""
    markup = markup[:MARKUP]
    found: list[str] = []
    size = at = 0
    while at < len(markup) and size < SAMPLE:
        start = markup.find("<", at)
        text = " ".join(markup[at : start if start >= 0 else len(markup)].split())
        if text:
            found.append(text)
            size += len(text) + 1
        if start < 0:
            break
        at = _tag_end(markup, start)
    return " ".join(found)[:SAMPLE]


def _tag_end(markup: str, start: int) -> int:
    if markup.startswith("<!--", start):
        return _end_of_match(markup, "-->", start)
    name = markup[start + 1 : start + 10].lower()
    for element, find_end in _ENDS.items():
        if name.startswith(element):
            end = find_end(markup, start)
            return _end_of_match(markup, ">", end.end()) if end else len(markup)
    return _end_of_match(markup, ">", start)


def _end_of_match(markup: str, sought: str, at: int) -> int:
    found = markup.find(sought, at)
    return found + len(sought) if found >= 0 else len(markup)
