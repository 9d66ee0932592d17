"""The arguments of the spider, parsed and checked, and the words of texts and of lists."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.exceptions import ConfigError
from bigcrawl.text_files.reading import lines_of
from bigcrawl_forms.campaign import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

_MOST: Final = {"queries": 100_000, "pages": 1_000, "window": 100_000, "width": 64}
_OFF: Final = frozenset(("0", "false", "no", "off"))


class FormOptions(NamedTuple):
    """The user's options for forms."""

    words: list[str]
    records: re.Pattern[str] | None
    forms: re.Pattern[str] | None
    post: re.Pattern[str] | None
    follow: bool
    forms_dir: str
    limits: Limits

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """Read arguments by name, each a string or a value.

        Raises:
            ConfigError: one of them is wrong.
        """
        records, forms, post = (_pattern(name, str(given.get(name, ""))) for name in ("records", "forms", "post"))
        return cls(
            read_words(str(given.get("words", ""))),
            records,
            forms,
            post,
            str(given.get("follow", "1")).lower() not in _OFF,
            str(given.get("forms_dir", "")),
            _limits_of(given),
        )


OPTION_NAMES: Final = frozenset((*FormOptions._fields, *Limits._fields)) - {"limits"}


def _pattern(name: str, given: str) -> re.Pattern[str] | None:
    try:
        return re.compile(given) if given else None
    except re.error as error:
        raise ConfigError(f"{name} is {given!r}, which is no regular expression: {error}") from None


def _limits_of(given: Mapping[str, Any]) -> Limits:
    defaults = Limits._field_defaults
    try:
        limits = Limits(**{name: type(default)(given.get(name, default)) for name, default in defaults.items()})
    except (TypeError, ValueError) as error:
        remedy = "queries, pages, window and width must be whole numbers, and least a number"
        raise ConfigError(f"{remedy}: {error}") from None
    for name, most in _MOST.items():
        if not 1 <= getattr(limits, name) <= most:
            raise ConfigError(f"{name} is {getattr(limits, name)}: it must be 1 to {most}")
    if not 0 <= limits.least < math.inf:
        raise ConfigError(f"least is {limits.least}: it must be 0 or more new records a query")
    return limits


TERMS_OF_TEXT_MAX: Final = 300
WORDS_MAX: Final = 100_000
_LINE_CHARS_MAX: Final = 1 << 20
_terms_in = re.compile(r"(?<![^\W_])[^\W_]{3,24}+(?![^\W_])").finditer


def terms_of(text: str) -> list[str]:
    """Return the different words of a text in lower case, in order; those of 3 to 24 letters or digits."""
    found: dict[str, None] = {}
    for match in _terms_in(text):
        word = match[0].lower()
        if not word.isdigit():
            found[word] = None
            if len(found) == TERMS_OF_TEXT_MAX:
                break
    return list(found)


def read_words(given: str) -> list[str]:
    """Return the words of an argument: a file with one entry a line, or words with blanks between them.

    Raises:
        ConfigError: the file cannot be read.
    """
    path = Path(given).expanduser()
    if not given.strip():
        return []
    if "/" not in given and not path.is_file():
        return list(dict.fromkeys(given.split()))
    try:
        with path.open("rb") as file:
            read = [line for line in lines_of(file, _LINE_CHARS_MAX) if line and not line.startswith("#")]
    except (OSError, ValueError) as error:
        raise ConfigError(f"words is {given!r}, which cannot be read: {error}; give a file, or the words") from None
    return list(dict.fromkeys(read))[:WORDS_MAX]
