"""What is asked for comes once, the first of the crawl first."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bigcrawl.stored.wanted import OTHERS_MAX, TOGETHER, RequestedPage, RequestedPages, RequestTemplates
from tests.support.sizes import examples

PAGES = 9_000


def test_pages_come_in_order_and_once() -> None:
    """Whatever order they are asked in, with the template of the first who asks."""
    wanted = RequestedPages(PAGES)
    assert wanted.request_ranks([7, 8_999, 3, 7], b"a") == 3
    assert wanted.request_ranks([3, 4], b"b") == 1
    assert [wanted.pop_first() for _ in range(5)] == [
        RequestedPage(3, b"a", (b"b",)),
        RequestedPage(4, b"b"),
        RequestedPage(7, b"a"),
        RequestedPage(8_999, b"a"),
        None,
    ]
    assert wanted.request_ranks([3], b"c") == 0, "it was given"
    assert not wanted


def test_a_page_that_is_asked_for_late_comes_next() -> None:
    """It stands before those that the crawl fetched later."""
    wanted = RequestedPages(PAGES)
    wanted.request_ranks([5_000, 6_000], b"")
    assert wanted.pop_first() == RequestedPage(5_000, b"")
    wanted.request_ranks([7, 5], b"late")
    assert [one.rank for one in iter(wanted.pop_first, None)] == [5, 7, 6_000]


def test_further_requests_for_a_page_come_each() -> None:
    """Beside its first one, in their order, before it was given and after."""
    wanted = RequestedPages(10)
    wanted.request_ranks([5], b"first")
    wanted.request_again(5, b"x")
    wanted.request_again(2, b"y")
    wanted.request_again(5, b"z")
    assert [one.template for one in iter(wanted.pop_first, None)] == [b"y", b"first", b"x", b"z"]
    wanted.request_again(5, b"again")
    assert wanted
    assert wanted.pop_first() == RequestedPage(5, b"again")


def test_all_pages_come_with_the_template_of_who_asks_or_the_default() -> None:
    """A page that is left out comes only if it is asked for."""
    wanted = RequestedPages(4)
    wanted.request_all(np.array([True, True, False, True]), b"")
    wanted.request_ranks([1, 3], b"asked")
    wanted.request_ranks([1], b"again")
    assert [one[:2] for one in iter(wanted.pop_first, None)] == [(0, b""), (1, b"asked"), (3, b"asked")]
    wanted.request_ranks([2], b"late")
    assert wanted.pop_first() == RequestedPage(2, b"late")


def test_who_asks_at_about_the_same_time_may_have_been_the_first() -> None:
    """Each of them once, up to a limit; who asks later, when many more pages were given, was not."""
    wanted = RequestedPages(PAGES)
    wanted.request_ranks([8_000], b"first")
    for template in (b"x", b"first", b"y", b"x"):
        assert wanted.request_ranks([8_000], template) == 0
    wanted.request_ranks(range(TOGETHER + 1), b"page")
    for _ in range(TOGETHER):
        wanted.pop_first()
    wanted.request_ranks([8_000], b"just in time")
    wanted.pop_first()
    wanted.request_ranks([8_000], b"too late")
    assert wanted.pop_first() == RequestedPage(8_000, b"first", (b"x", b"y", b"just in time"))
    wanted.request_ranks([8_001], b"")
    for number in range(100):
        wanted.request_ranks([8_001], b"%d" % number)
    last = wanted.pop_first()
    assert last is not None
    assert len(last.others) == OTHERS_MAX


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.lists(st.integers(0, PAGES - 1), max_size=5), st.sampled_from([b"a", b"b"])),
        st.tuples(st.just("besides"), st.integers(0, PAGES - 1), st.sampled_from([b"c", b"d"])),
        st.tuples(st.just("pop"), st.just(0), st.just(b"")),
    ),
    max_size=60,
)


@settings(max_examples=examples(200))
@given(STEPS, st.booleans())
def test_it_is_a_sorted_list(steps: list[tuple[str, list[int] | int, bytes]], has_all: bool) -> None:
    """Against a model that looks at everything each time."""
    wanted = RequestedPages(PAGES)
    first: dict[int, bytes] = {}
    besides: list[tuple[int, int, bytes]] = []
    given_ranks: set[int] = set()
    if has_all:
        pages = np.arange(PAGES) % 1_000 == 1
        wanted.request_all(pages, b"default")
        first = dict.fromkeys(np.flatnonzero(pages).tolist(), b"default")
    for number, (kind, what, template) in enumerate([*steps, *[("pop", 0, b"")] * 400]):
        if isinstance(what, list):
            new = [r for r in dict.fromkeys(what) if r not in given_ranks and first.get(r, b"default") == b"default"]
            assert wanted.request_ranks(what, template) == len(new)
            first |= dict.fromkeys(new, template)
        elif kind == "besides":
            wanted.request_again(what, template)
            besides.append((what, number, template))
        elif besides and min(besides)[0] < min(first, default=PAGES):
            rank, at, its = min(besides)
            besides.remove((rank, at, its))
            assert wanted.pop_first() == RequestedPage(rank, its)
        elif first:
            rank = min(first)
            found = wanted.pop_first()
            assert found is not None
            assert found[:2] == (rank, first.pop(rank))
            given_ranks.add(rank)
        else:
            assert wanted.pop_first() is None
        assert bool(wanted) == bool(first or besides)


def test_templates_are_forgotten_with_their_last_use() -> None:
    """Their numbers are used again, so unlike requests leave nothing behind."""
    templates = RequestTemplates()
    numbers = {templates.number_of(b"a"), templates.number_of(b"a"), templates.number_of(b"b", 2)}
    assert numbers == {0, 1}
    assert [templates.use_once(0), templates.use_once(1), templates.use_once(0), len(templates)] == [
        b"a",
        b"b",
        b"a",
        1,
    ]
    assert templates.number_of(b"c") == 0
    assert [templates.use_once(0), templates.use_once(1), len(templates)] == [b"c", b"b", 0]
