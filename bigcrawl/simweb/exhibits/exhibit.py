"""Defines an exhibit: one odd thing that a host may answer, and the right reaction of a crawler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from bigcrawl.simweb.basics.answer import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.simweb.basics.features import Feature

HTML: Final = (("Content-Type", "text/html; charset=utf-8"),)
OK: Final = frozenset({200})
# A client may leave before an answer is complete that it cannot receive or does not want; then this status is logged.
ABORTED: Final = 499


@dataclass(frozen=True, slots=True)
class Stand:
    """The place where an exhibit is shown, on which its answer may depend.

    Attributes:
        authority: host and port, as in URLs.
        own: the canonical path of the exhibit; `onward` is that of its proof, to which it leads.
        word: the letters at the start of the proof's name, not percent-encoded.
        agent: the crawler's product token.
        phase_ms: a time that differs between exhibits.
        filler: returns HTML paragraphs of about the given number of characters.
    """

    authority: str
    own: str
    onward: str
    word: str
    agent: str
    at_ms: int
    phase_ms: int
    filler: Callable[[int], str]

    @property
    def raw_onward(self) -> str:
        """`onward` with its letters unescaped."""
        return self.onward.replace(quote(self.word), self.word) if self.word else self.onward

    @property
    def link(self) -> str:
        """The usual link to the proof."""
        return f'<a href="{self.onward}">onward</a>\n'

    def html(self, body: str, head: str = '<meta charset="utf-8">') -> str:
        """Return a page around `body`, followed by some text."""
        title = f"<title>{self.own}</title>"
        return f"<!DOCTYPE html>\n<html><head>{head}{title}</head><body>\n{body}\n{self.filler(2_000)}</body></html>\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """One row of the table in exhibits/table.py.

    Attributes:
        slug: names the exhibit in paths: letters, digits and "-", not ending in a digit.
        answer: what the host answers; a pure function.
        lesson: what a correct crawler does.
        statuses: what it may see.
        leads: whether it leads anywhere: to the next of its `chain`, or to its proof.
        is_certain: whether every correct crawler finds what it leads to.
        is_whole: whether the answer can be received whole.
        is_retriable: whether it may be requested again.
        nofollow: whether its link must not be followed.
        word: what the name of its proof begins with, written in the page's charset.
        chain: how many of them lead to each other before the last leads to its proof.
    """

    slug: str
    feature: Feature
    answer: Callable[[Stand], Answer]
    lesson: str
    statuses: frozenset[int] = OK
    leads: bool = True
    is_certain: bool = True
    is_whole: bool = True
    is_retriable: bool = False
    nofollow: bool = False
    word: str = ""
    chain: int = field(default=1)


def page(body: Callable[[Stand], str]) -> Callable[[Stand], Answer]:
    """Answer with HTML in UTF-8 around the result of `body`."""
    return lambda stand: Answer(200, HTML, stand.html(body(stand)).encode())
