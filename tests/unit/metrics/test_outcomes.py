"""Outcomes become fixed values of labels, whatever a server answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.metrics.outcomes import DROPS, ERRORS, OTHER, OUTCOMES, STATUS_CLASSES, ended_counts, returned_counts

COUNTS = {
    "status:200": 7,
    "status:204": 1,
    "status:404": 2,
    "status:999": 1,
    "error:timeout": 3,
    "retried:status:503": 4,
    "retried:error:dns": 5,
    "dropped:forbidden": 6,
    "heads": 7,
    "robots": 8,
    "put_off": 9,
    "": 10,
}


def test_each_kind_of_end_is_counted_under_its_own() -> None:
    """Statuses by class, errors and drops by reason, repeated tries by either; values without a count are 0."""
    statuses = ended_counts(COUNTS, "status:", STATUS_CLASSES)
    assert statuses == {"1xx": 0, "2xx": 8, "3xx": 0, "4xx": 2, "5xx": 0, OTHER: 1}
    assert {k: v for k, v in ended_counts(COUNTS, "error:", ERRORS).items() if v} == {"timeout": 3}
    assert {k: v for k, v in ended_counts(COUNTS, "retried:", OUTCOMES).items() if v} == {"5xx": 4, "dns": 5}
    assert {k: v for k, v in ended_counts(COUNTS, "dropped:", (*DROPS, OTHER)).items() if v} == {"forbidden": 6}
    assert returned_counts(COUNTS) == {"heads": 7, "robots": 8, "put_off": 9, OTHER: 10}


@given(st.dictionaries(st.text() | st.from_regex(r"(status|error|retried:status):.*"), st.integers(0, 9)))
def test_no_outcome_makes_a_value_of_its_own(counts: dict[str, int]) -> None:
    """What is unknown is `other`, and nothing is lost."""
    for prefix, values in (("status:", STATUS_CLASSES), ("retried:", OUTCOMES)):
        found = ended_counts(counts, prefix, values)
        assert found.keys() == set(values)
        assert sum(found.values()) == sum(n for counter, n in counts.items() if counter.startswith(prefix))
