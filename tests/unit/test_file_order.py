"""The order of files: `tests.support.file_order`."""

from __future__ import annotations

import pytest

from tests.support.file_order import OTHERS_EACH, mixed

CRAWLS = ["c1", "c2"]
OTHERS = [f"o{number}" for number in range(2 * OTHERS_EACH + 1)]


def test_crawls_are_among_the_others() -> None:
    """Each kind keeps its order, and the others that are left come last."""
    middle = OTHERS_EACH, 2 * OTHERS_EACH
    expected = ["c1", *OTHERS[: middle[0]], "c2", *OTHERS[middle[0] : middle[1]], *OTHERS[middle[1] :]]
    assert mixed(CRAWLS, OTHERS) == expected


@pytest.mark.parametrize(("crawls", "others"), [(CRAWLS, []), ([], OTHERS), (CRAWLS, OTHERS[:1]), ([], [])])
def test_no_file_is_left_out(crawls: list[str], others: list[str]) -> None:
    """Whatever there is too few of."""
    found = mixed(crawls, others)
    assert sorted(found) == sorted([*crawls, *others])
    assert [file for file in found if file in crawls] == crawls
    assert [file for file in found if file in others] == others
