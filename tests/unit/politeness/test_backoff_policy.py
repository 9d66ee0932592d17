from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.politeness.backoff_policy import BackoffPolicy, backoff_of_failure, is_failure, retry_after_ms
from tests.support.running.tables import each

NOW_MS = 1_445_412_480_000  # Wed, 21 Oct 2015 07:28:00 GMT
NOW = "Wed, 21 Oct 2015 07:28:00 GMT"
LATER = "Wed, 21 Oct 2015 07:30:00 GMT"
LONGEST_MS = 3_600_000


@each(
    "value, asked_ms",
    [
        ("120", 120_000),
        (" 120 ", 120_000),
        ("0", 0),
        ("1", 1_000),
        (LATER, 120_000),
        ("Wednesday, 21-Oct-15 07:30:00 GMT", 120_000),
        ("Wed Oct 21 07:30:00 2015", 120_000),
        ("Wed, 21 Oct 2015 09:30:00 +0200", 120_000),
        ("Wed, 21 Oct 2015 07:30:00 -0000", 120_000),
        (NOW, 0),
        ("Fri, 01 Jan 1999 00:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_MS),
        ("999999999999999999", LONGEST_MS),
        ("86400", LONGEST_MS),
        *((text, 0) for text in ("", "soon", "-5", "1.5", "1e3", "12 s", "١٢", "\x00", "9" * 5_000, "a" * 5_000)),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, asked_ms: int) -> None:
    """All three spellings of an HTTP date; what is past or cannot be read is as if there were no header."""
    assert retry_after_ms(value, NOW, NOW_MS + 500_000, LONGEST_MS) == asked_ms


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_date_counts_from_here_when_the_answer_has_none(date: str) -> None:
    """A host whose answer says when it was sent is taken by its own clock, another by ours."""
    assert retry_after_ms(LATER, date, NOW_MS + 30_000, LONGEST_MS) == 90_000


@given(value=st.text(max_size=40), date=st.text(max_size=40))
def test_whatever_a_host_sends_the_wait_is_bounded(value: str, date: str) -> None:
    """No header raises, and none asks for more than the cap or less than nothing."""
    assert 0 <= retry_after_ms(value, date, NOW_MS, LONGEST_MS) <= LONGEST_MS


def test_failures_are_the_hosts_not_the_pages() -> None:
    """Not now, and no answer; a broken page, a body that broke off or is too large is an answer."""
    failures = ["status:429", "status:503", "error:dns", "error:timeout", "error:refused", "error:connection"]
    answers = ["status:200", "status:404", "status:500", "status:502", "error:dataloss", "error:too-large", ""]
    assert [outcome for outcome in failures + answers if is_failure(outcome)] == failures


def test_back_off_has_what_the_script_needs() -> None:
    """First and longest back-off, jitter in thousandths, bound of failures; what a host asks for is the least."""
    policy = BackoffPolicy(10_000, 60_000, 0, 7)
    assert backoff_of_failure(policy, 0.0) == (10_000, 60_000, 0, 7)
    assert backoff_of_failure(policy, 1.0, 90_000) == (90_000, 90_000, 500, 7)
