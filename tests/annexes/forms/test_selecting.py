"""Which query comes next: answers known by hand."""

from __future__ import annotations

import math

import pytest

from bigcrawl_forms.selecting import Known, cap_of, choose_query, expected_new, matches_of
from bigcrawl_forms.submitting import Query

FREQUENCIES = {"all": 100, "half": 50, "some": 10, "rare": 1}


def known(found: int = 200, total: float = 1_000, cap: float = math.inf, sampled: int = 100) -> Known:
    return Known(FREQUENCIES, sampled, found, total, cap)


def test_a_word_is_expected_as_often_in_all_records_as_in_the_sample() -> None:
    """Of 1,000 records of which 200 are found, a word of a tenth brings 80 new ones."""
    assert matches_of("some", known()) == pytest.approx(100)
    assert matches_of("", known()) == pytest.approx(1_000)
    assert matches_of("unknown", known()) == 0
    assert expected_new(100, known()) == pytest.approx(80)


def test_a_word_beyond_the_cap_is_worth_less_the_more_results_are_not_shown() -> None:
    assert expected_new(100, known(cap=100)) == pytest.approx(80)
    assert expected_new(500, known(cap=100)) == pytest.approx(16)
    assert expected_new(10, known(cap=100)) == pytest.approx(8)


def test_the_most_frequent_word_that_the_site_shows_whole_is_chosen() -> None:
    asked: set[Query] = set()
    for cap, order in ((math.inf, ["all", "half", "some", "rare"]), (120, ["some", "half", "all", "rare"])):
        asked.clear()
        chosen = []
        while (query := choose_query(known(cap=cap), asked)) is not None:
            chosen.append(query.term)
            asked.add(query)
        assert chosen == order


def test_words_of_a_list_come_first_while_little_is_known_and_last_when_words_run_out() -> None:
    listed = ("own", "list")
    assert choose_query(known(sampled=3), (), listed=listed) == Query("own")
    assert choose_query(known(), (), listed=listed) == Query("all")
    asked = [Query(term) for term in (*FREQUENCIES, "own")]
    assert choose_query(known(), asked, listed=listed) == Query("list")
    assert choose_query(known(), [*asked, Query("list")], listed=listed) is None


def test_a_word_beyond_the_cap_is_divided_by_the_selects() -> None:
    """Half of 1,000 records by five kinds are a hundred each: as much as a site shows."""
    kinds = [(kind,) for kind in "abcde"]
    asked = [Query("half"), Query("some")]
    chosen = choose_query(known(cap=100), asked, divided=["half"], combinations=kinds)
    assert chosen == Query("half", ("a",))
    again = choose_query(known(cap=100), [*asked, Query("half", ("a",))], divided=["half"], combinations=kinds)
    assert again == Query("half", ("b",))


def test_a_form_begins_without_words_if_it_has_selects() -> None:
    nothing = Known({"menu": 1}, 1, 0, 0, math.inf)
    kinds = [("a",), ("b",)]
    assert choose_query(nothing, (), divided=[""], combinations=kinds) == Query("", ("a",))
    assert choose_query(nothing, (), divided=[], combinations=kinds) == Query("menu")
    first = choose_query(nothing, (), combinations=kinds, has_text=False)
    assert first == Query("", ("a",))
    assert choose_query(nothing, [Query("", kind) for kind in kinds], combinations=kinds, has_text=False) is None


@pytest.mark.parametrize(
    ("sizes", "cap"),
    [
        ([], math.inf),
        ([100], math.inf),
        ([100, 7, 100], 100),
        ([1, 1], math.inf),
        ([5, 9, 9, 3], 9),
        ([0, 0], math.inf),
    ],
)
def test_two_largest_answers_of_one_size_are_a_cap(sizes: list[int], cap: float) -> None:
    assert cap_of(sizes) == cap
