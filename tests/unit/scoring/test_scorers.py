"""Scorers of texts: keywords, a user's, and what becomes of pages if one fails."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.scoring.scorers import CheckedScorer, KeywordScorer, make_scorer, url_words

NAME = f"{__name__}.Shouting"


class Shouting:
    """A user's: the share of capital letters."""

    def __call__(self, texts: list[str]) -> list[float]:
        return [sum(map(str.isupper, text)) / max(1, len(text)) for text in texts]


def failing(texts: list[str]) -> list[float]:
    """A user's that fails on what no trial has."""
    return [1 / len(text) for text in texts]


def test_each_word_of_the_topic_halves_what_is_missing() -> None:
    """Whole words in any case and script, and what begins as one with an asterisk; ten are enough."""
    score = KeywordScorer(["Bees", "beekeep*", "Bienenstöcke"])
    texts = ["", "a beesting", "BEES!", "bees, beekeepers", "bees bees BIENENSTÖCKE", "bees " * 10, "bees " * 10**4]
    assert score(texts) == [0, 0, 0.5, 0.75, 0.875, 1 - 0.5**10, 1 - 0.5**10]


@pytest.mark.parametrize("topic", ["", "  ", "bees a-b", "*", "be*es"])
def test_a_topic_that_is_none_is_refused(topic: str) -> None:
    """The message says what to write."""
    with pytest.raises(ConfigError, match="beekeep"):
        make_scorer("", topic)


def test_a_scorer_of_ones_own_is_named_or_given() -> None:
    """A class is made, a function taken as it is."""
    made = [make_scorer(each, "") for each in (NAME, Shouting, Shouting())]
    assert [scorer(["AB", "ab"]) for scorer in made] == [[1, 0]] * 3
    assert make_scorer(failing, "bees") is failing


@pytest.mark.parametrize("scorer", ["nowhere", "no.such.module", f"{__name__}.NAME", 5])
def test_a_scorer_that_is_none_is_refused(scorer: Any) -> None:
    """At the start, in one line."""
    with pytest.raises(ConfigError, match=r"scorer is .*(cannot be imported|must be a function)"):
        make_scorer(scorer, "")


@pytest.mark.parametrize(
    "scorer", [lambda texts: [0.5], lambda texts: 0.5, lambda texts: [float("nan")] * len(texts), list]
)
def test_a_scorer_is_tried_before_the_first_page(scorer: Any) -> None:
    """One that gives no score for each text ends the start."""
    with pytest.raises(ConfigError, match="failed in a trial"):
        CheckedScorer(scorer)


def test_a_scorer_that_fails_costs_scores_and_no_pages(caplog: pytest.LogCaptureFixture) -> None:
    """All texts of the call score 0, and the log says so once."""
    scored = CheckedScorer(failing)
    with caplog.at_level(logging.ERROR):
        assert [scored(["ab", ""]) for _ in range(3)] == [[0, 0]] * 3
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert scored(["ab"]) == [0.5]


def test_scores_are_from_0_to_1() -> None:
    """What is beyond counts as the bound; numbers of any kind are taken."""
    assert CheckedScorer(lambda texts: [-3, True, 1.5, 0.25][: len(texts)])(["a"] * 4) == [0, 1, 1, 0.25]


def test_the_words_of_a_url() -> None:
    """Host, path and query, escapes undone; not the scheme."""
    assert url_words("https://www.bees.example/a_b/%C3%A9t%C3%A9-2.html?q=honey&x") == (
        "www bees example a b été 2 html q honey x"
    )
