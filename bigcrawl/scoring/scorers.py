"""Scorers: how much texts are about a topic.

A scorer takes a list of texts and returns a score for each, from 0 to 1: docs/guide/focused.md. It gets the visible
text of a page; then, in one list, the anchor text and URL words of each of its links. It blocks the event loop.

    def scorer(texts):
        return [0.9 if "honey" in text.lower() else 0.0 for text in texts]
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote

from bigcrawl.exceptions import ConfigError
from bigcrawl.given import as_callable, import_object

logger = logging.getLogger(__name__)

Scorer = Callable[[list[str]], Any]

HITS_MAX: Final = 10
_words_of = re.compile(r"\w+").finditer
_between_words = re.compile(r"[\W_]+").sub


class KeywordScorer:
    """Counts a topic's words in a text: each halves the distance to 1, so that three give 0.875.

    Words are whole, in any case; `beekeep*` matches all words with this beginning.

    Raises:
        ConfigError: there is none, or one is not a word.
    """

    def __init__(self, words: Iterable[str]) -> None:
        given = [word.lower() for word in words]
        for word in given:
            if not re.fullmatch(r"\w+\*?", word):
                raise ConfigError(f"the topic has {word!r}, which is not a word: give words such as bees, or beekeep*")
        if not given:
            raise ConfigError('there is no topic: give one, as -a topic="bees honey beekeep*"')
        self._words = frozenset(word for word in given if not word.endswith("*"))
        self._starts = tuple(word[:-1] for word in given if word.endswith("*"))

    def __call__(self, texts: Sequence[str]) -> list[float]:
        return [1 - 0.5 ** self._count_hits(text) for text in texts]

    def _count_hits(self, text: str) -> int:
        found = (word for match in _words_of(text.lower()) if self._is_of_topic(word := match[0]))
        return sum(1 for _ in islice(found, HITS_MAX))

    def _is_of_topic(self, word: str) -> bool:
        return word in self._words or word.startswith(self._starts)


def make_scorer(scorer: Any, topic: str) -> Scorer:
    """Return `scorer`, its instance, or the object at its import path; without one, a scorer of the topic's words.

    Raises:
        ConfigError: there is neither, a word is invalid, or the path leads to no callable.
    """
    if not scorer:
        return KeywordScorer(topic.split())
    return as_callable("scorer", scorer, import_object("scorer", scorer) if isinstance(scorer, str) else scorer)


def url_words(url: str) -> str:
    return _between_words(" ", unquote(url.partition("//")[2])).strip()


class CheckedScorer:
    """A scorer whose results are checked, so that its failure costs scores and no pages.

    Raises:
        ConfigError: it failed in a trial.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._has_failed = False
        for texts in ([], ["a page", "and another one"]):  # fail at the start rather than at the first page
            try:
                _checked_scores(scorer(list(texts)), len(texts))
            except Exception as error:
                raise ConfigError(f"the scorer {scorer!r} failed in a trial: {error}") from error

    def __call__(self, texts: list[str]) -> list[float]:
        try:
            return _checked_scores(self._scorer(texts), len(texts))
        except Exception:
            if not self._has_failed:
                self._has_failed = True
                logger.exception(
                    "the scorer %(scorer)r failed for %(count)d texts, which count as not about the topic; further "
                    "failures are not logged",
                    {"scorer": self._scorer, "count": len(texts)},
                )
            return [0.0] * len(texts)


def _checked_scores(result: Any, count: int) -> list[float]:
    scores = [float(score) for score in result]
    if len(scores) != count:
        raise ValueError(f"it returned {len(scores)} scores for {count} texts; must be one for each")
    if any(score != score for score in scores):  # noqa: PLR0124 - NaN differs from itself
        raise ValueError("it returned a score that is not a number; must be from 0 to 1")
    return [min(max(score, 0.0), 1.0) for score in scores]
