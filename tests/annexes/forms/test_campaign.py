"""The state of a form: what a kill leaves, another process takes up; nothing is asked twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from bigcrawl_forms.campaign import FAILURES_MAX, NO_WORD, Campaign, Due, Limits
from bigcrawl_forms.journal import Journal, StateDisk
from bigcrawl_forms.submitting import Query, SearchForm
from tests.annexes.forms.pages import search_form

if TYPE_CHECKING:
    from pathlib import Path

FORM = "<form action=/s><input name=q></form>"


def campaign_in(directory: Path, *words: str, probes: bool = False, **limits: float) -> Campaign:
    journal = Journal(directory, StateDisk(directory))
    campaign = Campaign(journal, Limits(**limits), words, probes=probes)  # type: ignore[arg-type]
    asyncio.run(campaign.refresh())
    return campaign


def opened(directory: Path, *words: str, form: str = FORM, probes: bool = False, **limits: float) -> Campaign:
    campaign = campaign_in(directory, *words, probes=probes, **limits)
    campaign.open(search_form(form), [])
    return campaign


def answer(campaign: Campaign, due: Due, records: list[int], next_url: str = "") -> None:
    campaign.add_answer(due.query, due.page, records, next_url)


def test_queries_are_asked_up_to_the_width_and_pages_in_turn(tmp_path: Path) -> None:
    campaign = opened(tmp_path, "a", "b", "c", width=2)
    first, second = campaign.due()
    assert (first, second) == (Due(Query("a"), 1, ""), Due(Query("b"), 1, ""))
    assert campaign.due() == [first, second]
    answer(campaign, first, [1, 2], "http://a.example/s?page=2")
    assert campaign.due() == [Due(Query("a"), 2, "http://a.example/s?page=2"), second]
    answer(campaign, campaign.due()[0], [3])
    assert campaign.due() == [second, Due(Query("c"), 1, "")]
    assert campaign.found == 3


def test_pages_of_a_query_are_bounded(tmp_path: Path) -> None:
    campaign = opened(tmp_path, "a", width=1, pages=2)
    for page in (1, 2):
        [due] = campaign.due()
        assert due.page == page
        answer(campaign, due, [page], f"http://a.example/s?page={page + 1}")
    assert campaign.due() == []
    assert campaign.stop_reason == "words"


def test_another_process_takes_up_what_a_kill_left(tmp_path: Path) -> None:
    """With a line that was cut off; what was asked and is not over is asked once more, and nothing else."""
    campaign = opened(tmp_path, "a", "b", "c", "d", width=2)
    first, second = campaign.due()
    answer(campaign, first, [1, 2])
    outstanding = campaign.due()
    asyncio.run(campaign.sync())
    [file] = tmp_path.iterdir()
    with file.open("ab") as own:
        own.write(b'{"kind":"answer","term":"b","options":[],"pa')
    again = campaign_in(tmp_path, "a", "b", "c", "d", width=2)
    assert again.form == campaign.form
    assert again.due() == outstanding == [second, Due(Query("c"), 1, "")]
    assert (again.found, again.queries) == (2, 3)


def test_an_answer_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    campaign = opened(tmp_path, "a", "b", width=1)
    [due] = campaign.due()
    answer(campaign, due, [1, 2])
    onward = campaign.due()
    answer(campaign, due, [1, 2, 3])
    campaign.add_failure(due.query)
    assert campaign.due() == onward
    assert campaign.found == 2


def test_each_process_sees_what_others_wrote(tmp_path: Path) -> None:
    """So a query is asked by one of them, and counts in both."""
    one = opened(tmp_path, "a", "b", "c", width=1)
    other = campaign_in(tmp_path, "a", "b", "c", width=1)
    [due] = one.due()
    asyncio.run(one.sync())
    asyncio.run(other.refresh())
    assert other.due() == [due]
    answer(other, due, [1])
    assert [each.query.term for each in other.due()] == ["b"]
    asyncio.run(other.sync())
    asyncio.run(one.refresh())
    assert one.due() == other.due()
    assert one.found == 1


def test_a_read_in_any_order_gives_the_same_state(tmp_path: Path) -> None:
    """Page 2 before page 1, as two files may be read."""
    campaign = opened(tmp_path, "a", width=1)
    query = Query("a")
    campaign.add_answer(query, 2, [3], "")
    campaign.add_answer(query, 1, [1, 2], "http://a.example/s?page=2")
    assert (campaign.found, campaign.due(), campaign.stop_reason) == (3, [], "words")


@pytest.mark.parametrize(("least", "expected"), [(1.0, 13), (0.0, 40), (3.0, 5)])
def test_it_stops_when_queries_bring_less_than_the_set_yield(tmp_path: Path, least: float, expected: int) -> None:
    """Ten queries bring two records each, and further ones none."""
    words = [f"word{number}" for number in range(40)]
    campaign = opened(tmp_path, *words, width=1, least=least, window=5)
    asked = 0
    while due := campaign.due():
        records = [2 * asked, 2 * asked + 1] if asked < 10 else [0]
        answer(campaign, due[0], records)
        asked += 1
    assert campaign.is_over
    assert campaign.stop_reason == ("words" if least == 0 else "yield")
    assert asked == expected


def test_it_stops_by_the_number_of_queries(tmp_path: Path) -> None:
    campaign = opened(tmp_path, *"abcdefg", width=2, queries=3)
    for number in range(3):
        assert not campaign.is_over
        answer(campaign, campaign.due()[0], [number])
    assert campaign.due() == []
    assert (campaign.stop_reason, campaign.is_over) == ("queries", True)


def test_a_form_that_does_not_answer_is_left_alone(tmp_path: Path) -> None:
    campaign = opened(tmp_path, *"abcdefghij", width=1)
    for _ in range(FAILURES_MAX):
        [due] = campaign.due()
        campaign.add_failure(due.query)
    assert campaign.due() == []
    assert campaign.stop_reason == "failing"


def test_a_failed_page_ends_its_query_and_keeps_its_records(tmp_path: Path) -> None:
    campaign = opened(tmp_path, "a", "b", width=1)
    answer(campaign, campaign.due()[0], [1], "http://a.example/s?page=2")
    campaign.add_failure(Query("a"))
    assert [due.query.term for due in campaign.due()] == ["b"]
    assert (campaign.found, campaign.stop_reason) == (1, "")


def test_a_word_without_results_is_asked_first_and_its_links_are_no_records(tmp_path: Path) -> None:
    campaign = opened(tmp_path, "a", probes=True, width=2)
    [probe] = campaign.due()
    assert probe.query.term == NO_WORD
    answer(campaign, probe, [10, 11])
    assert (campaign.is_own(10), campaign.is_own(1), campaign.found) == (True, False, 0)
    assert [due.query.term for due in campaign.due()] == ["a"]


def test_words_of_records_decide_and_come_late(tmp_path: Path) -> None:
    """A form without words waits for those of its records."""
    campaign = opened(tmp_path, width=1, window=100)
    assert campaign.due() == []
    assert campaign.is_over
    for record in range(12):
        campaign.add_text(record, ["bees", "honey"] if record < 9 else ["bees"])
    assert [due.query.term for due in campaign.due()] == ["bees"]
    answer(campaign, campaign.due()[0], [1])
    assert [due.query.term for due in campaign.due()] == ["honey"]


def test_a_form_of_selects_is_asked_for_each_value(tmp_path: Path) -> None:
    select = "<select name=t><option value=''>any<option>x<option>y</select>"
    campaign = opened(tmp_path, form=f"<form action=/find>{select}</form>", probes=True, width=3)
    assert [due.query for due in campaign.due()] == [Query("", ("x",)), Query("", ("y",))]


def test_it_estimates_from_how_many_queries_found_a_record(tmp_path: Path) -> None:
    """By hand: 4 records, 2 of them once and 1 twice, by 3 queries: 4 + 2/3 * 2 * 1 / 4."""
    campaign = opened(tmp_path, "a", "b", "c", width=1)
    for records in ([1, 2, 3], [1, 2], [1, 4]):
        answer(campaign, campaign.due()[0], records)
    assert campaign.total().value == pytest.approx(4 + 2 / 3 * 2 / 4)


def test_no_query_is_asked_twice_over_kills_at_any_place(tmp_path: Path) -> None:
    """A process writes a few entries, dies, and its lines are cut after any number of bytes of the last one."""
    words = [f"word{number}" for number in range(30)]
    asyncio.run(opened(tmp_path, *words, width=3).sync())
    answered: Counter[Query] = Counter()
    for run in range(30):
        campaign = campaign_in(tmp_path, *words, width=3, window=100)
        due = campaign.due()
        if not due:
            break
        assert not [one for one in due if answered[one.query]]
        answer(campaign, due[run % len(due)], [run])
        answered[due[run % len(due)].query] += 1
        campaign.due()
        asyncio.run(campaign.sync())
        newest = max(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        lines = newest.read_bytes().splitlines(keepends=True)
        newest.write_bytes(
            b"".join(lines[:-1]) + lines[-1][: run % len(lines[-1])] if run % 3 and len(lines) > 2 else b"".join(lines)
        )
    assert sum(answered.values()) == len(answered) == 30


def test_form_is_found_again_in_its_journal(tmp_path: Path) -> None:
    form = search_form("<form action=/s><input name=q required><select name=a><option>1<option>2</select></form>")
    campaign = campaign_in(tmp_path)
    campaign.open(form, [5, 6])
    asyncio.run(campaign.sync())
    again = campaign_in(tmp_path)
    assert isinstance(again.form, SearchForm)
    assert again.form.key == form.key
    assert again.is_own(5)
