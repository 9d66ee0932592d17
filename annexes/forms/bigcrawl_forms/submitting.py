"""Makes the request of a query, as a browser would send the form."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from bigcrawl_forms.classifying import method_of, search_field_of, split_words, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from bigcrawl_forms.reading import Field, Form

SELECTS_MAX: Final = 2
"""How many of a form's selects are filled; the others keep the page's value."""
COMBINATIONS_MAX: Final = 300
_SENT: Final = frozenset(("text", "search", "hidden", "select", "number", "range", "date", "month", "week", "time"))
# Selects that change how results are shown, and not which.
_SHOWING: Final = split_words(
    "sort sorting sortby order orderby orderdir dir direction view layout display limit per perpage pagesize size rows "
    "count results lang language locale currency format page ipp num"
)


class Query(NamedTuple):
    """The values for a form: its words, and one for each select, empty for the page's own value."""

    term: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchForm:
    """The parts of a search form that are needed to send it. All values are plain, and can be stored as JSON."""

    method: str
    action: str
    """The absolute URL, without query for GET."""
    page: str
    """The URL of the page on which it was found."""
    charset: str
    fixed: list[list[str]]
    """Names and values that are always sent, in page order; those of `text` and `selects` are filled in."""
    text: str
    """The name of the field for words; empty if there is none."""
    needs_text: bool
    selects: list[tuple[str, list[str]]]
    """Names of the filled selects, each with its values but the page's own."""

    @classmethod
    def of(cls, form: Form, action: str, page: str, charset: str) -> Self:
        method, text = method_of(form), search_field_of(form)
        fixed = [[one.name, one.value] for one in _sent_fields(form)]
        selects = [(one.name, values) for one in form.fields if (values := _values_of(one))]
        return cls(
            method,
            action.partition("?")[0] if method == "get" else action,
            page,
            charset,
            fixed,
            text.name if text else "",
            text is not None and "required" in text.attributes,
            sorted(selects, key=lambda each: len(each[1]))[-SELECTS_MAX:],
        )

    @property
    def key(self) -> str:
        """The form's identity: the same on each page of a site that has it."""
        names = sorted({name for name, _ in self.fixed})
        return blake2b(repr((self.method, self.action, names)).encode(), digest_size=8).hexdigest()

    def as_plain(self) -> dict[str, Any]:
        return asdict(self)

    def combinations(self) -> list[tuple[str, ...]]:
        """Return combinations of the selects' values, at most `COMBINATIONS_MAX`."""
        if not self.selects:
            return []
        selects = self.selects
        if math.prod(len(values) for _, values in selects) > COMBINATIONS_MAX:
            selects = selects[-1:]
        chosen = dict(selects)
        each = itertools.product(*(chosen.get(name, [""]) for name, _ in self.selects))
        return list(itertools.islice(each, COMBINATIONS_MAX))

    def request_of(self, query: Query) -> tuple[str, str]:
        """Return the URL and the body of a query; the body of a GET is empty."""
        filled = {name: value for (name, _), value in zip(self.selects, query.options, strict=False) if value}
        if self.text:
            filled[self.text] = query.term
        pairs = [(name, filled.pop(name, value)) for name, value in self.fixed]
        written = urlencode([*pairs, *filled.items()], encoding=self.charset, errors="xmlcharrefreplace")
        return (f"{self.action}?{written}", "") if self.method == "get" else (self.action, written)


def _sent_fields(form: Form) -> Iterator[Field]:
    has_submit = False
    for one in form.fields:
        if not one.name or not one.is_on:
            continue
        if one.kind == "submit" and not has_submit:  # which a browser's Enter presses
            has_submit = True
            yield one
        elif one.kind in _SENT or one.kind in ("checkbox", "radio"):
            yield one


def _values_of(one: Field) -> list[str]:
    """Return the values to try for a select, without the page's own; none for selects that only arrange results."""
    if one.kind != "select" or not one.name or not one.is_on or "multiple" in one.attributes:
        return []
    named = words_of(one.name)
    if not _SHOWING.isdisjoint([*named, "".join(named)]):
        return []
    return list(dict.fromkeys(value for value, _ in one.options if value not in ("", one.value)))
