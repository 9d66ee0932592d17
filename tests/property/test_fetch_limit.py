"""The limit on fetches at a time under any answers, and looks at any time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.politeness.fetch_limit import FetchLimit

TIMES = st.integers(0, 200_000)
LOOKS = st.lists(
    st.tuples(
        st.integers(0, 40_000),  # ms since the look before
        st.integers(0, 60),  # answers, of as many hosts
        TIMES,  # how long they took: from here on
        st.integers(0, 5_000),  # and so much longer from one to the next
        st.integers(0, 600),  # fetches under way
    ),
    max_size=60,
)


@given(least=st.integers(1, 600), most=st.integers(1, 600), start_ms=st.integers(0, 1 << 45), looks=LOOKS)
def test_limit_stays_between_its_bounds(
    least: int, most: int, start_ms: int, looks: list[tuple[int, int, int, int, int]]
) -> None:
    """It is never out of them, at most doubled in a look, told when it changed, and less than all in a crowd."""
    limit = FetchLimit(least, most, start_ms)
    now_ms = start_ms
    for wait_ms, answers, took_ms, step_ms, fetching in looks:
        now_ms += wait_ms
        for host in range(answers):
            limit.record_answer(str(host), took_ms + host * step_ms, now_ms)
        before = limit.limit
        assert limit.adjust(now_ms, fetching) is (limit.limit != before)
        assert min(least, most) <= limit.limit <= most
        assert limit.limit <= max(2 * before, before + 1)
        assert not (limit.is_crowded and limit.limit == most)
        assert limit.crowded_ms > 0
