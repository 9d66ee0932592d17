"""The words of texts, and lists of words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.text_files.reading import lines_of

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
