"""The state of one form and its next queries, computed from the entries of its journal.

    form     the form was found; `own` are links of its page, by their keys
    ask      a query was chosen
    answer   a page of a query's results: the keys of its records, and the URL of the next page
    failed   a query that has no more answer
    text     the words of a record's page

A query begins with its `ask`, and is over at its last page. Whatever was asked and is not over is *outstanding*: at
most `width` queries, whose requests may be yielded any number of times, because the frontier knows them by form, query
and page. So a callback that runs again after a kill yields what the first run did.

Entries are folded at once, and safe after `sync`. Nothing that follows from them may be yielded before.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl_forms.selecting import Known, Total, cap_of, choose_query, estimate_total
from bigcrawl_forms.submitting import Query, SearchForm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bigcrawl_forms.journal import Journal

SAMPLE_MAX: Final = 2_000
"""How many records' words are counted."""
TERMS_MAX: Final = 20_000
RECORDS_MAX: Final = 100_000
_RAISED, _LOWERED, _EXCESS_MAX = 1.1, 0.8, 20.0
OWN_MAX: Final = 2_000
FAILURES_MAX: Final = 3
"""After so many queries in a row without an answer, or refused by robots.txt, a form is left alone."""
NO_WORD: Final = "qzxvkwjq"
"""A word that no record has: what its answer links to is no result."""


class Limits(NamedTuple):
    """When the queries of a search form end, and how many of them run at once."""

    queries: int = 200
    pages: int = 10
    """Pages of a query's results."""
    least: float = 1.0
    """New records a query, on average over `window` queries, below which it stops."""
    window: int = 10
    width: int = 2
    """Queries in flight."""


@dataclass(slots=True)
class Asked:
    """A query that was sent, and its results so far."""

    next_urls: dict[int, str] = field(default_factory=dict)
    """The URL of the next page, empty for none, by the number of each answered page."""
    records: set[int] = field(default_factory=set)
    """Those of a query that is not over; then `size` is their number."""
    size: int = 0
    new: int = 0
    is_over: bool = False
    has_failed: bool = False

    @property
    def page(self) -> int:
        """The number of the last results page that was read; 0 for none."""
        return max(self.next_urls, default=0)


class Due(NamedTuple):
    """A request that may be sent; `url` is empty for the first page of a query."""

    query: Query
    page: int
    url: str


class Campaign:
    def __init__(self, journal: Journal, limits: Limits, listed: Sequence[str] = (), *, probes: bool = True) -> None:
        """Know nothing yet; `refresh` reads what the journal has.

        Args:
            journal: of this form.
            limits: its bounds.
            listed: words of the user.
            probes: whether the first query is for `NO_WORD`.
        """
        self.form: SearchForm | None = None
        self._journal = journal
        self._limits = limits
        self._listed = listed
        self._probes = probes
        self._combinations: list[tuple[str, ...]] = []
        self._own: set[int] = set()
        self._without_results: set[int] = set()
        self._asked: dict[Query, Asked] = {}
        self._over: list[Query] = []  # in the order in which they ended
        self._times: dict[int, int] = {}  # how many queries found a record
        self._frequencies: Counter[str] = Counter()
        self._sampled: set[int] = set()
        self._lacks_words = False
        self._is_reading = asyncio.Lock()

    async def refresh(self) -> None:
        """Read the entries that other processes have written since the last call."""
        async with self._is_reading:
            for entry in sorted(await self._journal.read_new(), key=_time_of):
                self._fold(entry)

    async def sync(self) -> None:
        """Wait until all entries are safe on disk."""
        await self._journal.sync()

    def open(self, form: SearchForm, own: Iterable[int]) -> None:
        """Start with a form; `own` are the keys of the links on its page."""
        self._record({"kind": "form", "form": form.as_plain(), "own": sorted(own)[:OWN_MAX]})

    def add_answer(self, query: Query, page: int, records: Iterable[int], next_url: str) -> None:
        """Add a page of results; a known page changes nothing."""
        fields = {"records": list(records), "next": next_url if page < self._limits.pages else ""}
        self._record({"kind": "answer", "term": query.term, "options": query.options, "page": page, **fields})

    def add_failure(self, query: Query) -> None:
        self._record({"kind": "failed", "term": query.term, "options": query.options})

    def add_text(self, record: int, terms: Sequence[str]) -> None:
        """Add the words of a record's page, or of the form's own page."""
        if record not in self._sampled and len(self._sampled) < SAMPLE_MAX:
            self._record({"kind": "text", "record": record, "terms": list(terms)})

    def due(self) -> list[Due]:
        """Choose queries until `width` of them run, unless a bound is reached, and return all outstanding ones."""
        while len(outstanding := [*self._outstanding()]) < self._limits.width and not self._bound_reached():
            query = self._next_query()
            self._lacks_words = query is None and not outstanding
            if query is None:
                break
            self._record({"kind": "ask", "term": query.term, "options": query.options})
        return outstanding

    @property
    def stop_reason(self) -> str:
        """Why no more queries are sent: failing, records, queries, yield or words; empty if some are."""
        return self._bound_reached() or ("words" if self._lacks_words else "")

    def _bound_reached(self) -> str:
        limits, done = self._limits, self._over
        if len(done) >= FAILURES_MAX and all(self._asked[query].has_failed for query in done[-FAILURES_MAX:]):
            return "failing"
        if len(self._times) >= RECORDS_MAX:
            return "records"
        counted = [self._asked[query].new for query in done if query.term != NO_WORD][-limits.window :]
        if len(counted) >= limits.window and sum(counted) < limits.least * len(counted):
            return "yield"
        return "queries" if self.queries >= limits.queries else ""

    @property
    def is_over(self) -> bool:
        return not any(self._outstanding()) and bool(self.stop_reason)

    @property
    def queries(self) -> int:
        return len(self._asked)

    @property
    def found(self) -> int:
        return len(self._times)

    def total(self) -> Total:
        """Estimate how many records there are."""
        times = Counter(self._times.values())
        queries = sum(bool(one.size or one.records) for one in self._asked.values())
        return estimate_total(self.found, times[1], times[2], queries)

    def is_own(self, link: int) -> bool:
        """Return whether a link is no result, as it is also on the page without results, or else on the form's page."""
        return link in (self._without_results or self._own)

    def is_found(self, record: int) -> bool:
        return record in self._times

    def has_answer(self, query: Query, page: int) -> bool:
        return query in self._asked and page in self._asked[query].next_urls

    def _next_query(self) -> Query | None:
        form = self.form
        if form is None:
            return None
        if self._probes and form.text:
            probe = self._asked.get(Query(NO_WORD))
            if probe is None:
                return Query(NO_WORD)
            if not probe.is_over:
                return None
        cap = cap_of(self._asked[query].size for query in self._over)
        total = max(self.total().value, self.found, len(self._sampled)) * self._excess(cap)
        known = Known(self._frequencies, len(self._sampled), self.found, total, cap)
        divided = [query.term for query, one in self._asked.items() if not query.options and one.size >= cap]
        if self._combinations and not form.needs_text:
            divided.append("")
        return choose_query(
            known,
            self._asked,
            listed=self._listed,
            divided=divided,
            combinations=self._combinations,
            has_text=bool(form.text),
        )

    def _excess(self, cap: float) -> float:
        """Return the factor by which words are more frequent in all records than in the sample.

        It has too many of the records that the site shows first. So the factor rises after each query that reached the
        cap, and falls after the others: a third of the queries are then shown whole.
        """
        factor = 1.0
        for query in self._over:
            size = self._asked[query].size
            if size and not query.options:
                factor *= _RAISED if size >= cap else _LOWERED
                factor = min(max(factor, 1.0), _EXCESS_MAX)
        return factor

    def _outstanding(self) -> Iterator[Due]:
        for query, one in self._asked.items():
            if not one.is_over:
                yield Due(query, one.page + 1, one.next_urls.get(one.page, ""))

    def _record(self, entry: dict[str, Any]) -> None:
        entry["at"] = time.time_ns()
        self._journal.append(entry)
        self._fold(entry)

    def _fold(self, entry: dict[str, Any]) -> None:
        kind = entry.get("kind")
        if kind == "form":
            self.form = self.form or SearchForm(**entry["form"])
            self._combinations = self.form.combinations()
            self._own.update(entry["own"])
        elif kind == "text":
            self._fold_text(entry["record"], entry["terms"])
        elif kind in ("ask", "answer", "failed"):
            query = Query(entry["term"], tuple(entry["options"]))
            one = self._asked.setdefault(query, Asked())
            if kind == "answer":
                self._fold_answer(query, one, entry)
            elif kind == "failed" and not one.is_over:
                one.has_failed = not one.next_urls
                self._end(query, one)

    def _fold_answer(self, query: Query, one: Asked, entry: dict[str, Any]) -> None:
        if entry["page"] in one.next_urls:
            return
        one.next_urls[entry["page"]] = entry["next"]
        if query.term == NO_WORD:
            self._without_results.update(entry["records"][:OWN_MAX])
        else:
            for record in set(entry["records"]) - one.records:
                one.records.add(record)
                times = self._times.get(record, 0)
                one.new += not times
                self._times[record] = times + 1
        if not one.is_over and not one.next_urls[one.page]:
            self._end(query, one)

    def _end(self, query: Query, one: Asked) -> None:
        one.is_over = True
        one.size, one.records = len(one.records), set()
        self._over.append(query)

    def _fold_text(self, record: int, terms: Sequence[str]) -> None:
        if record in self._sampled or len(self._sampled) >= SAMPLE_MAX:
            return
        self._sampled.add(record)
        self._frequencies.update(terms)
        if len(self._frequencies) > TERMS_MAX:  # the rarest words bring least
            self._frequencies = Counter(dict(self._frequencies.most_common(TERMS_MAX // 2)))


def _time_of(entry: dict[str, Any]) -> int:
    at = entry.get("at")
    return at if isinstance(at, int) else 0
