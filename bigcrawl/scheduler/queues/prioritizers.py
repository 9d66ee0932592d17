"""Prioritizers: the priority of a URL when its partition's owner queues it (step 6), from what is known there.

A spider says what it knows by the priority of a link: the page, the anchor. The owner knows what no page does: how many
domains link to the URL's pay-level domain (PLD), and whether that looks like a trap. A prioritizer has both, for a
batch of URLs, and returns their priorities. `BIGCRAWL_PRIORITIZER` names it; without one the spider's priority counts.

    in-degree   the PLD's in-degree is the priority, so that each level is a decade of it
    rank        by the PLD's rank among all of the crawl, on a logarithmic scale: the first 1, the last 0
    quality     as rank; below zero if the PLD is caught as a trap (shapes, same content, wildcard DNS)
    opic        by what the URL has received of the ranks of pages that link to it, among all that were scored
                lately: the first twentieth is urgent, up to a fifth high, the better half raised
    depth       hops from the start: 0 is urgent, 1 and 2 are high, more are raised

Built-in ones score what the spider left ordinary: any other priority of its own stays. To add one, write a function
here and add it to `PRIORITIZERS`.

Scoring begins with what the spider gave, which the URL's body keeps, so it may be repeated with newer knowledge: URLs
that were over budget are scored again when they are re-read, those in turns when their partition is opened, and each
time that the links of the crawl have doubled; if votes are counted (`records.votes`), each time that the partition has
admitted half as many again, too.

Source: Mercator's prioritizer (Najork & Heydon 2001 §3), which assigns each URL the front queue that it joins. Differs:
the spider's score comes first; batches.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bigcrawl.exceptions import ConfigError
from bigcrawl.given import imported, made_callable
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS, Ranks
from bigcrawl.scheduler.records.body import look_at_link
from bigcrawl.scheduler.records.member import PRIORITY_MAX
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl
from bigcrawl.scheduler.records.votes import codes_of
from bigcrawl.scoring.scores import priorities_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray
    from bigcrawl.scheduler.records.votes import VoteArray

    NumberArray = npt.NDArray[np.int64]
    FlagArray = npt.NDArray[np.bool_]

logger = logging.getLogger(__name__)

_SETTING: Final = "BIGCRAWL_PRIORITIZER"
_DEPTH_MAX: Final = 1 << 31  # a spider may say any number


class FoundUrls:
    """What is known of n URLs, each attribute in their order. What costs time is found out when it is asked for.

    Attributes:
        in_degrees: uint32, shape (n,): how many other PLDs are known to link to each one's PLD.
        are_traps: bool, shape (n,): whether its PLD is caught as a trap or a mirror.
        votes: of `records.votes.VOTES`, shape (n,), if votes are counted.
    """

    def __init__(
        self,
        queued: Sequence[QueuedUrl],
        in_degrees: InDegreeArray,
        are_traps: FlagArray,
        ranks: Ranks,
        votes: VoteArray | None = None,
    ) -> None:
        self._queued = queued
        self._ranks = ranks
        self._votes = votes
        self.in_degrees = in_degrees
        self.are_traps = are_traps

    def __len__(self) -> int:
        return len(self._queued)

    def __repr__(self) -> str:
        return f"<FoundUrls {len(self)}>"

    @property
    def hosts(self) -> list[str]:
        """The hosts: lower-case A-labels or IP literals."""
        return [url.host for url in self._queued]

    @property
    def urls(self) -> list[str]:
        """The URLs as they are fetched. Cost: 1 us each for the first of `urls`, `depths` and `given`."""
        return [link[0] for link in self._links]

    @property
    def depths(self) -> NumberArray:
        """int64, shape (n,): hops from the start URLs, on the way on which each URL was found first."""
        return np.array([link[1] for link in self._links], dtype=np.int64)

    @property
    def given(self) -> NumberArray:
        """int64, shape (n,): the priority that the spider gave; 0 is ordinary.

        If votes are counted, the highest that it gave on any page.
        """
        given = np.array([link[2] for link in self._links], dtype=np.int64)
        if self._votes is None:
            return given
        highest: NumberArray = np.maximum(given, np.minimum(self._votes["given"], PRIORITY_MAX))
        return highest

    @property
    def received(self) -> npt.NDArray[np.float64]:
        """float64, shape (n,): what it has received of the ranks of pages that link to it; an average page has 1.

        All 0 unless the prioritizer is `opic`.
        """
        if self._votes is None:
            return np.zeros(len(self))
        return self._votes["received"].astype(np.float64)

    @property
    def rank_scores(self) -> npt.NDArray[np.float64]:
        """float64, shape (n,): 1 for the PLD with the most in-links of the crawl, 0 for the last and for none known."""
        total = self._ranks.total
        if not total:
            return np.zeros(len(self))
        scores: npt.NDArray[np.float64] = 1 - np.log(self._ranks.likely(self.in_degrees)) / np.log(total + 1)
        return np.where(self.in_degrees > 0, scores, 0.0)

    @cached_property
    def _links(self) -> list[tuple[str, int, int]]:
        return [_link_of(url) for url in self._queued]


Prioritizer = Callable[[FoundUrls], Any]
"""Returns n whole numbers, the priorities of the URLs: anything that numpy makes an array of."""


def _link_of(url: QueuedUrl) -> tuple[str, int, int]:
    try:
        address, depth, given = look_at_link(url.body)
        return address, min(max(depth, 0), _DEPTH_MAX), min(max(given, -PRIORITY_MAX), PRIORITY_MAX)
    except (ValueError, TypeError, OverflowError):  # damaged bytes: whoever decodes them to fetch the URL reports that
        return "", 0, url.priority


def _by_in_degree(found: FoundUrls) -> Any:
    return found.in_degrees


def _by_rank(found: FoundUrls) -> Any:
    return priorities_of(found.rank_scores)


def _by_quality(found: FoundUrls) -> Any:
    return np.where(found.are_traps, -1, priorities_of(found.rank_scores))


class _ByReceived:
    """OPIC: by the place of what a URL has received among all that were scored lately.

    Quantiles rather than fixed bounds, because what a URL has received depends on how many links pages have, and grows
    with the crawl. They are kept in 256 bins, and the last `_REMEMBERED` URLs count.
    """

    _REMEMBERED: Final = 1 << 16
    _PLACES: Final = (0.5, 0.8, 0.95, 1.0)
    _SCORES: Final = (0.0, 1 / 3, 2 / 3, 1.0)

    def __init__(self) -> None:
        self._bins = np.zeros(256)

    def __call__(self, found: FoundUrls) -> Any:
        codes = codes_of(found.received)
        self._bins *= max(0.0, 1 - len(codes) / self._REMEMBERED)
        self._bins += np.bincount(codes, minlength=256)
        below = np.cumsum(self._bins) - self._bins / 2
        places = below[codes] / max(self._bins.sum(), 1.0)
        return priorities_of(np.where(codes > 0, np.interp(places, self._PLACES, self._SCORES), 0.0))


def _by_depth(found: FoundUrls) -> Any:
    return priorities_of(1 / (1 + found.depths))


def as_given(found: FoundUrls) -> Any:
    """The prioritizer of a crawl without one, if votes are counted: the highest priority that the spider gave."""
    return found.given


PRIORITIZERS: Final[dict[str, Callable[[], Prioritizer]]] = {
    "in-degree": lambda: _by_in_degree,
    "rank": lambda: _by_rank,
    "quality": lambda: _by_quality,
    "opic": _ByReceived,
    "depth": lambda: _by_depth,
}
"""Makers of the built-in ones; one that is made may remember what it has scored."""

_WITHOUT_LINKS: Final = ("", "depth", "opic")


def counts_links(name: str) -> bool:
    """Whether the prioritizer of this name may ask for in-degrees, so that links between PLDs must be counted."""
    return name not in _WITHOUT_LINKS


def needs_ranks(name: str) -> bool:
    """Whether the prioritizer of this name asks for pages' ranks, so that pages hand theirs on to what they link to."""
    return name == "opic"


class Prioritizing:
    """A prioritizer with what is known of the crawl at this time. It never fails a step.

    Args:
        prioritizer: as `make_prioritizer` returned it.
        ranks: of PLDs in the whole crawl.
        generation: of the scores. With another one, URLs that wait on disk are scored again.
        has_failed: whether the prioritizer has failed before, which was logged.
        counts_votes: whether votes are counted, so that scores depend on them.
    """

    def __init__(
        self,
        prioritizer: Prioritizer,
        ranks: Ranks,
        generation: int = 1,
        *,
        has_failed: bool = False,
        counts_votes: bool = False,
    ) -> None:
        self._prioritizer = prioritizer
        self._ranks = ranks
        self.generation = generation
        self.has_failed = has_failed
        self.counts_votes = counts_votes

    def __repr__(self) -> str:
        return f"<Prioritizing {self._prioritizer!r} {self._ranks!r}>"

    def prioritized(
        self,
        urls: Sequence[QueuedUrl],
        in_degrees: InDegreeArray,
        trap_divisors: npt.NDArray[np.uint32] | None,
        votes: VoteArray | None = None,
    ) -> list[QueuedUrl]:
        """Return the URLs with their priorities, in their order.

        URLs keep the priority that they have if the prioritizer fails, which is logged once; and URLs that were tried
        in vain stay behind their host's others.

        Args:
            urls: n of them, new or queued before.
            in_degrees: of each one's PLD, uint32, shape (n,).
            trap_divisors: of each one's PLD, shape (n,), above 1 if it is a trap or a mirror; None if none is.
            votes: for each one, of `VOTES`, shape (n,); None if votes are not counted.

        Cost: that of the prioritizer, and 1 us for each URL whose priority changes.
        """
        are_traps = np.zeros(len(urls), dtype=np.bool_) if trap_divisors is None else trap_divisors > 1
        found = FoundUrls(urls, in_degrees, are_traps, self._ranks, votes)
        try:
            priorities = _checked(self._prioritizer(found), len(urls)).tolist()
        except Exception:
            if not self.has_failed:
                self.has_failed = True
                logger.exception(
                    "%(setting)s failed for %(count)d URLs, which keep the priority that they have; further failures "
                    "are not logged",
                    {"setting": _SETTING, "count": len(urls)},
                )
            return list(urls)
        return [
            url if url.priority == priority or _was_tried(url) else url._replace(priority=priority)
            for url, priority in zip(urls, priorities, strict=True)
        ]


def make_prioritizer(name: str) -> Prioritizer | None:
    """Return the prioritizer that the setting names, after a trial; None for "".

    Args:
        name: a name in `PRIORITIZERS`, or the import path of a function, or of a class whose object is called.

    Raises:
        ConfigError: it is unknown, cannot be imported or made, or does not return a priority for each URL.
    """
    if not name:
        return None
    if name in PRIORITIZERS:
        return _Ordinary(name)
    if "." not in name:
        close = difflib.get_close_matches(name, PRIORITIZERS, n=1, cutoff=0.4)
        hint = f"did you mean {close[0]}? " if close else ""
        raise ConfigError(
            f"{_SETTING} is {name!r}; {hint}must be one of {', '.join(PRIORITIZERS)}, or the import path of a function "
            f"of your own, e.g. my.module.prioritize"
        )
    found: Prioritizer = made_callable(_SETTING, name, imported(_SETTING, name))
    for samples in ((), (_SAMPLE, _SAMPLE)):  # fail at the start rather than in the first step
        nothing = np.zeros(len(samples), dtype=np.uint32)
        try:
            _checked(found(FoundUrls(samples, nothing, nothing.astype(np.bool_), Ranks(EMPTY_COUNTS))), len(samples))
        except Exception as error:
            raise ConfigError(f"{_SETTING} is {name}, which failed in a trial: {error}") from error
    return found


class _Ordinary:
    """A built-in prioritizer: it scores URLs to which the spider gave no priority."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._prioritizer = PRIORITIZERS[name]()

    def __repr__(self) -> str:
        return f"<prioritizer {self._name}>"

    def __call__(self, found: FoundUrls) -> Any:
        given = found.given
        return np.where(given == 0, self._prioritizer(found), given)


# With a body as `adapter.request_codec` writes it.
_SAMPLE: Final = QueuedUrl(1, "www.example.com", 0, 0, b"\x93\xb7http://www.example.com/\x01\xc0")


def _checked(result: Any, count: int) -> NumberArray:
    """Return the priorities within their bounds.

    Raises:
        ValueError: they are not `count` whole numbers.
    """
    given = np.asarray(result)
    is_whole = given.dtype.kind in "iu" or not given.size
    if given.shape != (count,) or not is_whole:
        raise ValueError(
            f"it returned {given.dtype} numbers of shape {given.shape} for {count} URLs; must be {count} whole "
            f"numbers, e.g. bigcrawl.scoring.scores.priorities_of(scores)"
        )
    priorities: NumberArray = np.clip(given, -PRIORITY_MAX, PRIORITY_MAX).astype(np.int64)
    return priorities


def _was_tried(url: QueuedUrl) -> bool:
    """Whether a URL comes back from Redis with a priority lowered by failures (`records.member`)."""
    return bool(url.flags & UNCHECKED) and url.priority < 0
