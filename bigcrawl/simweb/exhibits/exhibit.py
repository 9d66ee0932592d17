"""What an exhibit is: one odd thing that a host may answer, and what a right crawler makes of it."""

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
# A client may leave, and is logged with this status, before an answer that it cannot have or does not want is over.
ABORTED: Final = 499


@dataclass(frozen=True, slots=True)
class Stand:
    """Where an exhibit is shown: what its answer may depend on.

    Attributes:
        authority: host and port, as URLs have it.
        own: the canonical path of the exhibit, `onward` that of what it leads to: its proof.
        word: the letters at the start of the proof's name, not percent-encoded.
        agent: the crawler's product token.
        phase_ms: a time that differs from exhibit to exhibit.
        filler: HTML paragraphs of about as many characters.
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
        """`onward` with its letters as they are."""
        return self.onward.replace(quote(self.word), self.word) if self.word else self.onward

    @property
    def link(self) -> str:
        """The usual link to the proof."""
        return f'<a href="{self.onward}">onward</a>\n'

    def html(self, body: str, head: str = '<meta charset="utf-8">') -> str:
        """A page around `body`, with some text behind it."""
        title = f"<title>{self.own}</title>"
        return f"<!DOCTYPE html>\n<html><head>{head}{title}</head><body>\n{body}\n{self.filler(2_000)}</body></html>\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """One row of the table in exhibits.py.

    Attributes:
        slug: names the exhibit in paths: letters, digits and "-", not ending in a digit.
        answer: what the host answers; a pure function.
        lesson: what a right crawler does.
        statuses: what it may see.
        leads: whether anything leads on from it, to the next of its `chain` or to its proof.
        is_certain: whether every right crawler finds what it leads to.
        is_whole: whether the answer can be received whole.
        is_retriable: whether it may be asked for again.
        nofollow: whether what leads on is not to be followed.
        word: what the name of its proof begins with, to be written in the page's charset.
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
    """An answer of HTML in UTF-8 around what `body` writes."""
    return lambda stand: Answer(200, HTML, stand.html(body(stand)).encode())
