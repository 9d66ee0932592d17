"""The elements that are read for links, and those whose text contains no tags. Change `compiled.c` with them."""

from __future__ import annotations

import re
from typing import Final

BLANK: Final = "\t\n\f\r "
NAME_ENDS: Final = rf"(?=[{BLANK}/>])"
IS: Final = rf"[{BLANK}]*+=[{BLANK}]*+"
LINKING: Final = "a|area|base|frame|link|meta|template"
EMBEDDING: Final = (
    "img|image|source|embed|object|applet|form|button|input|use|feimage|tref|textpath|mpath|pattern|filter|cursor"
    "|lineargradient|radialgradient|mrow|mi|mn|mo|mtext|maction"
)
"""Elements whose references are not links to pages; read on request, like `script` and `title`."""
RAW: Final = ("script", "style", "textarea", "title", "iframe", "noframes", "noembed", "xmp")
"""Elements whose text contains no tags."""


def in_any_case(expression: str) -> str:
    """Make the ASCII letters of an expression, and no others, match in upper and lower case."""
    return re.sub("[a-z]", lambda letter: f"[{letter[0]}{letter[0].upper()}]", expression)


find_attributes = re.compile(
    rf"([^{BLANK}/>][^{BLANK}/>=]*+)(?:{IS}(?:\"([^\"]*+)\"?+|'([^']*+)'?+|([^{BLANK}>\"'][^{BLANK}>]*+))?+)?+"
).findall
find_end: Final = {name: re.compile(rf"</{in_any_case(name)}{NAME_ENDS}").search for name in RAW}
_find_foreign = re.compile(rf"<(/?+)(?:{in_any_case('svg|math')}){NAME_ENDS}").finditer


class ForeignElements:
    """Tracks which positions are within SVG or MathML, where a slash closes a tag; queried in page order."""

    __slots__ = ("_depth", "_looked", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._looked = self._depth = 0

    def reach(self, at: int) -> bool:
        """Advance to a position, and return whether it is in SVG or MathML."""
        for found in _find_foreign(self._text, self._looked, at):
            self._depth = max(0, self._depth - 1) if found[1] else self._depth + 1
        self._looked = at
        return self._depth > 0
