"""An exhibit: an unusual answer, and the right reaction of a crawler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from bigcrawl_simweb.basics.answer import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl_simweb.basics.features import Feature

HTML: Final = (("Content-Type", "text/html; charset=utf-8"),)
OK: Final = frozenset({200})
# The logged status if a client leaves before an answer is complete.
ABORTED: Final = 499


@dataclass(frozen=True, slots=True)
class ExhibitContext:
    """The context of an exhibit, on which its answer may depend.

    Attributes:
        own, onward: the canonical paths of the exhibit and of its proof.
        word: the letters at the start of the proof's name, not percent-encoded.
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
        return f'<a href="{self.onward}">onward</a>\n'

    def html(self, body: str, head: str = '<meta charset="utf-8">') -> str:
        title = f"<title>{self.own}</title>"
        return f"<!DOCTYPE html>\n<html><head>{head}{title}</head><body>\n{body}\n{self.filler(2_000)}</body></html>\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """One row of the table of exhibits.

    Attributes:
        slug: its name in paths: letters, digits and "-", not ending in a digit.
        lesson: what a correct crawler does.
        leads: whether it leads to the next exhibit of its `chain`, or to its proof, a page that nothing else leads to.
        is_certain: whether every correct crawler finds that.
        word: the start of its proof's name, written in the page's charset.
        chain: how many exhibits lead from one to the next before the proof.
    """

    slug: str
    feature: Feature
    answer: Callable[[ExhibitContext], Answer]
    lesson: str
    statuses: frozenset[int] = OK
    leads: bool = True
    is_certain: bool = True
    is_whole: bool = True
    is_retriable: bool = False
    nofollow: bool = False
    word: str = ""
    chain: int = field(default=1)


def page_answer(body: Callable[[ExhibitContext], str]) -> Callable[[ExhibitContext], Answer]:
    return lambda stand: Answer(200, HTML, stand.html(body(stand)).encode())
