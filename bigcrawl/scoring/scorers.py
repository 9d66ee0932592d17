"""Scorers: how much texts are about a topic. A focused crawl asks one about each page, and about each link of it.

A scorer is a function of a list of texts, or an object that is called like one. It returns a score for each text, from
0 (nothing speaks for the topic) to 1. It gets the visible text of a page, alone in a list; and, in one list for all
links of that page, the texts of their anchors with the words of their URLs. It is called in the event loop: 1 ms of a
scorer is 1 ms in which nothing else happens.

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
from bigcrawl.given import imported, made_callable

logger = logging.getLogger(__name__)

Scorer = Callable[[list[str]], Any]
"""Returns a score from 0 to 1 for each of the texts, as a list or an array."""

HITS_MAX: Final = 10
_words_of = re.compile(r"\w+").finditer
_between_words = re.compile(r"[\W_]+").sub


class KeywordScorer:
    """Counts the words of a topic in a text: each halves what is missing to 1, so that three give 0.875.

    Args:
        words: whole words in any case; one that ends with `*` stands for all that begin so, as in `beekeep*`.

    Raises:
        ConfigError: there is none, or one is not a word.

    Cost: 0.1 us for each word of a text, up to the tenth of the topic.
    """

    def __init__(self, words: Iterable[str]) -> None:
        given = [word.lower() for word in words]
        for word in given:
            if not re.fullmatch(r"\w+\*?", word):
                raise ConfigError(f"the topic has {word!r}, which is not a word: give words such as bees, or beekeep*")
        if not given:
            raise ConfigError('there is no topic: -a topic="bees honey beekeep*"')
        self._words = frozenset(word for word in given if not word.endswith("*"))
        self._starts = tuple(word[:-1] for word in given if word.endswith("*"))

    def __repr__(self) -> str:
        return f"<KeywordScorer {len(self._words) + len(self._starts)} words>"

    def __call__(self, texts: Sequence[str]) -> list[float]:
        """Return the score of each text."""
        return [1 - 0.5 ** self._hits(text) for text in texts]

    def _hits(self, text: str) -> int:
        found = (word for match in _words_of(text.lower()) if self._is_of_topic(word := match[0]))
        return sum(1 for _ in islice(found, HITS_MAX))

    def _is_of_topic(self, word: str) -> bool:
        return word in self._words or word.startswith(self._starts)


def make_scorer(scorer: Any, topic: str) -> Scorer:
    """Return a scorer of the topic's words if no other is given.

    Args:
        scorer: a scorer, a class of scorers, the import path of one, or "".
        topic: words with blanks between them.

    Raises:
        ConfigError: there is neither, a word is not one, or the path leads to nothing that can be called.
    """
    if not scorer:
        return KeywordScorer(topic.split())
    return made_callable("scorer", scorer, imported("scorer", scorer) if isinstance(scorer, str) else scorer)


def url_words(url: str) -> str:
    """Return the words of a URL, host included, with blanks between them. Cost: 2 us."""
    return _between_words(" ", unquote(url.partition("//")[2])).strip()


class Scoring:
    """A scorer whose results are checked, so that a fault in it costs scores and no pages.

    Raises:
        ConfigError: a trial of it failed.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._has_failed = False
        for texts in ([], ["a page", "and another one"]):  # fail at the start rather than at the first page
            try:
                _checked(scorer(list(texts)), len(texts))
            except Exception as error:
                raise ConfigError(f"the scorer {scorer!r} failed in a trial: {error}") from error

    def __repr__(self) -> str:
        return f"<Scoring by {self._scorer!r}>"

    def __call__(self, texts: list[str]) -> list[float]:
        """Return a score from 0 to 1 for each text; 0 for all if the scorer fails, which is logged once."""
        try:
            return _checked(self._scorer(texts), len(texts))
        except Exception:
            if not self._has_failed:
                self._has_failed = True
                logger.exception(
                    "the scorer %(scorer)r failed for %(count)d texts, which count as not about the topic; further "
                    "failures are not logged",
                    {"scorer": self._scorer, "count": len(texts)},
                )
            return [0.0] * len(texts)


def _checked(result: Any, count: int) -> list[float]:
    """Return the scores, at least 0 and at most 1.

    Raises:
        ValueError, TypeError: they are not `count` numbers.
    """
    scores = [float(score) for score in result]
    if len(scores) != count:
        raise ValueError(f"it returned {len(scores)} scores for {count} texts; must be one for each")
    if any(score != score for score in scores):  # noqa: PLR0124 - what is not a number differs from itself
        raise ValueError("it returned a score that is not a number; must be from 0 to 1")
    return [min(max(score, 0.0), 1.0) for score in scores]
