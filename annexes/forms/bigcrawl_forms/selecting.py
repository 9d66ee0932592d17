"""Chooses the query that is expected to find most new records.

A word that d of n downloaded records have is expected in N d/n of all N. The share of them that is new is that of all
records that are not found yet. A site shows only so many results a query, its *cap*: of a word with more, the same
first ones come each time, so it is worth less the more it has. Its results can be divided by the values of a select.

Source: Ntoulas, Zerfos, Cho, "Downloading textual hidden web content through keyword queries" (JCDL 2005), section 3:
the adaptive policy, with the independence estimator. Differs: the cap and selects.

How many records there are, by how often queries found the same ones (capture and recapture).

For m queries, S records found, f1 of them by one query and f2 by two:

    estimate    S + (m - 1)/m * f1 (f1 - 1) / (2 (f2 + 1))          Chao's, bias-corrected, for incidence
    interval    log-normal about the records that are left, so it never begins below S

Records that no query can find do not count, and those that are easier to find than others make it a lower bound.

Source: Chao, "Estimating the population size for capture-recapture data with unequal catchability" (Biometrics 1987);
variance as in Colwell, EstimateS, appendix B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl_forms.submitting import Query

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

SAMPLE_LEAST: Final = 10
"""Records from which words are chosen by their frequency; before, those of a list come first."""


class Known(NamedTuple):
    """The known facts about a form's records when a query is chosen."""

    frequencies: Mapping[str, int]
    """How many of the sampled records have a word."""
    sampled: int
    found: int
    total: float
    """The estimated number of records, at least `found`."""
    cap: float
    """How many results a query brings at most; infinite if unknown."""


def expected_new(matches: float, known: Known) -> float:
    """Return the expected number of new records from a query with this number of matches."""
    reached = matches if matches <= known.cap else known.cap * known.cap / matches
    return reached * max(known.total - known.found, 1) / max(known.total, 1)


def matches_of(term: str, known: Known) -> float:
    """Return the expected number of records with a word; an empty query matches all."""
    frequency = known.sampled if not term else known.frequencies.get(term, 0)
    return known.total * frequency / max(known.sampled, 1)


def choose_query(
    known: Known,
    asked: Collection[Query],
    *,
    listed: Sequence[str] = (),
    divided: Iterable[str] = (),
    combinations: Sequence[tuple[str, ...]] = (),
    has_text: bool = True,
) -> Query | None:
    """Return the best query that was not sent yet; None if there is none.

    Args:
        known: of the records so far.
        asked: queries that were chosen before.
        listed: words of the user, which come first while little is known, and last when all found words were asked.
        divided: words whose results are to be divided by the selects.
        combinations: values of the selects.
        has_text: whether the form takes words at all.
    """
    if not has_text:
        return next((one for options in combinations if (one := Query("", options)) not in asked), None)
    first_listed = next((one for word in listed if (one := Query(word)) not in asked), None)
    if first_listed is not None and known.sampled < SAMPLE_LEAST:
        return first_listed
    divided = list(divided)
    if not known.found and "" in divided:  # which takes no word of the site's
        for options in combinations:
            if (one := Query("", options)) not in asked:
                return one
    best: tuple[float, str, Query] | None = None
    for query, matches in _candidates(known, asked, divided, combinations):
        rank = (expected_new(matches, known), query.term)
        if best is None or rank > best[:2]:
            best = (*rank, query)
    return best[2] if best is not None else first_listed


def cap_of(sizes: Iterable[int]) -> float:
    """Return the largest number of results, if two queries had exactly that number; otherwise infinity."""
    largest, times = 0, 0
    for size in sizes:
        if size > largest:
            largest, times = size, 1
        elif size == largest:
            times += 1
    return largest if times > 1 and largest > 1 else math.inf


def _candidates(
    known: Known, asked: Collection[Query], divided: Iterable[str], combinations: Sequence[tuple[str, ...]]
) -> Iterable[tuple[Query, float]]:
    for term in known.frequencies:
        query = Query(term)
        if query not in asked:
            yield query, matches_of(term, known)
    for term in divided:
        matches = matches_of(term, known) / max(len(combinations), 1)
        for options in combinations:
            query = Query(term, options)
            if query not in asked:
                yield query, matches
                break  # the others of the word are worth the same


_Z_95: Final = 1.96


@dataclass(frozen=True, slots=True)
class Total:
    """An estimated number of records, and its bounds at 95 % confidence."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:,.0f} ({self.low:,.0f} to {self.high:,.0f})"


def estimate_total(found: int, once: int, twice: int, queries: int) -> Total:
    """Estimate the number of records; with fewer than two queries nothing is known beyond `found`.

    Args:
        found: different records.
        once: records that one query found.
        twice: records that two found.
        queries: how many queries found any.
    """
    if queries < 2 or not found:
        return Total(found, found, math.inf)
    share = (queries - 1) / queries
    left = share * once * (once - 1) / (2 * (twice + 1))
    if left <= 0:
        return Total(found, found, found + once)
    variance = (
        left
        + share**2 * once * (2 * once - 1) ** 2 / (4 * (twice + 1) ** 2)
        + share**2 * once**2 * twice * (once - 1) ** 2 / (4 * (twice + 1) ** 4)
    )
    spread = math.exp(_Z_95 * math.sqrt(math.log1p(variance / left**2)))
    return Total(found + left, found + left / spread, found + left * spread)
