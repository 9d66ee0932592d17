"""Prioritizers: the priority of a URL when its partition's owner queues it (docs/guide/priorities.md).

The owner knows facts that no page shows: how many domains link to the URL's PLD, and whether the PLD looks like a trap.
Features add prioritizers in a module `prioritizers`. Scoring starts from the spider's priority, which the URL's body
keeps, so it may be repeated when scores change.

Source: Mercator's prioritizer (Najork & Heydon 2001 §3). Differs: the spider's score comes first; batches.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bigcrawl.exceptions import ConfigError
from bigcrawl.feature_list import modules_of
from bigcrawl.given import as_callable, import_object
from bigcrawl.scheduler.budgets.in_degrees import EMPTY_COUNTS, InDegreeRanks
from bigcrawl.scheduler.records.body import known_in, look_at_link
from bigcrawl.scheduler.records.member import NOT_RULED, PRIORITY_MAX
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl
from bigcrawl.scoring.scores import priorities_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from bigcrawl.revisiting.visit import Visit
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray

    NumberArray = npt.NDArray[np.int64]
    FlagArray = npt.NDArray[np.bool_]

logger = logging.getLogger(__name__)

_SETTING: Final = "BIGCRAWL_PRIORITIZER"
_DEPTH_MAX: Final = 1 << 31
_NOTHING: Final[Mapping[str, Any]] = {}


class FoundUrls:
    """The known facts about n URLs, each attribute in their order. Costly ones are computed on access.

    Attributes:
        in_degrees: uint32, shape (n,): other PLDs that are known to link to the URL's PLD.
        are_traps: bool, shape (n,): whether the URL's PLD was found to be a trap or a mirror.
    """

    def __init__(
        self,
        queued: Sequence[QueuedUrl],
        in_degrees: InDegreeArray,
        are_traps: FlagArray,
        ranks: InDegreeRanks,
        known: Mapping[str, Any] = _NOTHING,
    ) -> None:
        self._queued = queued
        self._ranks = ranks
        self._known = known
        self.in_degrees = in_degrees
        self.are_traps = are_traps

    def __len__(self) -> int:
        return len(self._queued)

    def __repr__(self) -> str:
        return f"<FoundUrls {len(self)}>"

    @property
    def hosts(self) -> list[str]:
        return [url.host for url in self._queued]

    @property
    def urls(self) -> list[str]:
        return [link[0] for link in self._links]

    @property
    def depths(self) -> NumberArray:
        """int64, shape (n,): hops from the start URLs, on the path by which each URL was first found."""
        return np.array([link[1] for link in self._links], dtype=np.int64)

    @property
    def given(self) -> NumberArray:
        """int64, shape (n,): the spider's priority; 0 is ordinary. With votes, the highest of all linking pages.

        That of a rule set by hand replaces it.
        """
        given = np.array([link[2] for link in self._links], dtype=np.int64)
        highest: NumberArray = np.maximum(given, self._known.get("given", given))
        ruled = self._known.get("ruled")
        return highest if ruled is None else np.where(ruled == NOT_RULED, highest, ruled)

    @property
    def received(self) -> npt.NDArray[np.float64]:
        """float64, shape (n,): the rank received from linking pages; an average page has 1. All 0 without ranks."""
        return self._known["received"] if "received" in self._known else np.zeros(len(self))

    @cached_property
    def visits(self) -> list[Visit | None]:
        """The `revisiting.visit.Visit` of each page that is visited again; None for URLs never visited."""
        from bigcrawl.revisiting.visit import Visit, VisitFormatError

        found: list[Visit | None] = []
        for url in self._queued:
            try:
                data = known_in(url.body)
                found.append(Visit.unpack(data) if data else None)
            except (ValueError, VisitFormatError):
                found.append(None)
        return found

    @property
    def change_rates(self) -> npt.NDArray[np.float64]:
        """float64, shape (n,): changes per second by a page's visits; 0 without a change or a second visit."""
        from bigcrawl.revisiting.change_rate import change_rate

        return np.array([0.0 if visit is None else change_rate(visit.history) for visit in self.visits])

    @property
    def rank_scores(self) -> npt.NDArray[np.float64]:
        """float64, shape (n,): 1 for the PLD with the most in-links of the crawl, 0 for a PLD without any."""
        total = self._ranks.total
        if not total:
            return np.zeros(len(self))
        scores: npt.NDArray[np.float64] = 1 - np.log(self._ranks.likely_ranks(self.in_degrees)) / np.log(total + 1)
        return np.where(self.in_degrees > 0, scores, 0.0)

    @cached_property
    def _links(self) -> list[tuple[str, int, int]]:
        return [_link_of(url) for url in self._queued]


Prioritizer = Callable[[FoundUrls], Any]
"""Returns the URLs' priorities: n whole numbers, in any form that numpy converts to an array."""


def _link_of(url: QueuedUrl) -> tuple[str, int, int]:
    try:
        address, depth, given = look_at_link(url.body)
        return address, min(max(depth, 0), _DEPTH_MAX), min(max(given, -PRIORITY_MAX), PRIORITY_MAX)
    except (ValueError, TypeError, OverflowError):  # damaged bytes are reported when they are decoded for a fetch
        return "", 0, url.priority


def _by_in_degree(found: FoundUrls) -> Any:
    return found.in_degrees


def _by_rank(found: FoundUrls) -> Any:
    return priorities_of(found.rank_scores)


def _by_quality(found: FoundUrls) -> Any:
    return np.where(found.are_traps, -1, priorities_of(found.rank_scores))


def _by_changes(found: FoundUrls) -> Any:
    """Score by quality, for known pages times the share of them that changes per day, at most 1."""
    is_known = np.array([visit is not None for visit in found.visits], dtype=np.bool_)
    scores = found.rank_scores * np.where(is_known, np.minimum(found.change_rates * 86_400, 1), 1)
    return np.where(found.are_traps, -1, priorities_of(scores))


def _by_depth(found: FoundUrls) -> Any:
    return priorities_of(1 / (1 + found.depths))


def as_given(found: FoundUrls) -> Any:
    """Return the spider's highest priority; the default if features collect votes."""
    return found.given


PRIORITIZERS: Final[dict[str, Callable[[], Prioritizer]]] = {
    "in-degree": lambda: _by_in_degree,
    "rank": lambda: _by_rank,
    "quality": lambda: _by_quality,
    "changes": lambda: _by_changes,
    "depth": lambda: _by_depth,
    **{name: make for module in modules_of("prioritizers") for name, make in module.PRIORITIZERS.items()},
}
"""Makers of the built-in prioritizers; each prioritizer may cache scores."""


class SafePrioritizer:
    """A prioritizer with the crawl's current ranks, which never fails a step.

    With a new `generation`, URLs on disk are scored again.
    """

    def __init__(
        self,
        prioritizer: Prioritizer,
        ranks: InDegreeRanks,
        generation: int = 1,
        *,
        has_failed: bool = False,
        counts_links: bool = False,
    ) -> None:
        self._prioritizer = prioritizer
        self._ranks = ranks
        self.generation = generation
        self.has_failed = has_failed
        self.counts_links = counts_links

    def renewed(self, ranks: InDegreeRanks, generation: int) -> SafePrioritizer:
        return SafePrioritizer(
            self._prioritizer, ranks, generation, has_failed=self.has_failed, counts_links=self.counts_links
        )

    def prioritize(
        self,
        urls: Sequence[QueuedUrl],
        in_degrees: InDegreeArray,
        trap_divisors: npt.NDArray[np.uint32] | None,
        known: Mapping[str, Any] = _NOTHING,
    ) -> list[QueuedUrl]:
        """Return the URLs with their new priorities, or with their own ones if the prioritizer fails.

        URLs after a failed try stay behind their host's others. Divisors above 1 mark traps and mirrors.
        """
        are_traps = np.zeros(len(urls), dtype=np.bool_) if trap_divisors is None else trap_divisors > 1
        found = FoundUrls(urls, in_degrees, are_traps, self._ranks, known)
        try:
            priorities = _checked_priorities(self._prioritizer(found), len(urls)).tolist()
        except Exception:
            if not self.has_failed:
                self.has_failed = True
                logger.exception(
                    "%(setting)s failed for %(count)d URLs, whose priority stays as it is; further failures are "
                    "not logged",
                    {"setting": _SETTING, "count": len(urls)},
                )
            return list(urls)
        return [
            url if url.priority == priority or _was_tried(url) else url._replace(priority=priority)
            for url, priority in zip(urls, priorities, strict=True)
        ]


def make_prioritizer(name: str) -> Prioritizer | None:
    """Return the prioritizer that the setting names, after a trial call; None for ""."""
    if not name:
        return None
    if name in PRIORITIZERS:
        return _OrdinaryPrioritizer(name)
    if "." not in name:
        close = difflib.get_close_matches(name, PRIORITIZERS, n=1, cutoff=0.4)
        hint = f"did you mean {close[0]}? " if close else ""
        raise ConfigError(
            f"{_SETTING} is {name!r}; {hint}must be one of {', '.join(PRIORITIZERS)}, or the import path of a function "
            f"of your own, e.g. my.module.prioritize"
        )
    found: Prioritizer = as_callable(_SETTING, name, import_object(_SETTING, name))
    for samples in ((), (_SAMPLE, _SAMPLE)):  # fail at the start rather than in the first step
        nothing = np.zeros(len(samples), dtype=np.uint32)
        try:
            _checked_priorities(
                found(FoundUrls(samples, nothing, nothing.astype(np.bool_), InDegreeRanks(EMPTY_COUNTS))), len(samples)
            )
        except Exception as error:
            raise ConfigError(f"{_SETTING} is {name}, which failed in a trial: {error}") from error
    return found


class _OrdinaryPrioritizer:
    def __init__(self, name: str) -> None:
        self._name = name
        self._prioritizer = PRIORITIZERS[name]()

    def __repr__(self) -> str:
        return f"<prioritizer {self._name}>"

    def __call__(self, found: FoundUrls) -> Any:
        given = found.given
        return np.where(given == 0, self._prioritizer(found), given)


_SAMPLE: Final = QueuedUrl(1, "www.example.com", 0, 0, b"\x93\xb7http://www.example.com/\x01\xc0")


def _checked_priorities(result: Any, count: int) -> NumberArray:
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
    return bool(url.flags & UNCHECKED) and url.priority < 0
