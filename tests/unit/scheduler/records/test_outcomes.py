"""Outcomes in numbers: what is written is read, in this version and from the disks of earlier ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.scheduler.records.outcomes import (
    CODES,
    VALUE,
    OutcomesFormatError,
    check_outcomes,
    last_of_each,
    pack_keys,
    pack_outcome,
    pack_outcomes,
    read_outcome,
    rule_hash,
    unpack_keys,
    unpack_outcomes,
)
from bigcrawl.stats import CRAWL_COUNTERS

NAMES = st.one_of(st.sampled_from(sorted(CODES)), st.integers(100, 999).map("status:{}".format))
ENDS = st.lists(st.tuples(st.integers(0, 2**64 - 1), NAMES, st.integers(0, 2**16 - 1)))


@given(ends=ENDS, time_ms=st.integers(0, 2**32 * 1000 - 1), counter=st.integers(0, 9))
def test_what_is_packed_is_read(ends: list[tuple[int, str, int]], time_ms: int, counter: int) -> None:
    """Keys, names and details in their order, with the seconds of the entry's id."""
    keys, values = unpack_outcomes([(f"{time_ms}-{counter}", pack_outcomes(ends))])
    read = [(int(key), *read_outcome(value)) for key, value in zip(keys, values, strict=True)]
    assert read == [(*end, time_ms // 1000) for end in ends]
    assert values.dtype == VALUE


def test_outcomes_of_many_entries_have_the_time_of_each() -> None:
    """Entries without rows are no hindrance; of a key that is told of twice the last value counts."""
    told = [("1000-0", pack_outcomes([(5, "status:500", 0), (3, "error:dns", 0)])), ("2000-0", b"")]
    told.append(("3000-9", pack_outcomes([(5, "status:200", 0)])))
    keys, values = last_of_each(*unpack_outcomes(told))
    read = [(int(key), *read_outcome(value)) for key, value in zip(keys, values, strict=True)]
    assert read == [(3, "error:dns", 0, 1), (5, "status:200", 0, 3)]
    assert [len(column) for column in last_of_each(*unpack_outcomes([]))] == [0, 0]


def test_layout_is_that_of_the_crawls_that_exist() -> None:
    """Twelve bytes an outcome and eight a value, little-endian; no code ever moves."""
    assert pack_outcome(0x0102030405060708, "status:404", 0x0A0B) == bytes.fromhex("08070605040302019401 0b0a")
    assert (VALUE.itemsize, VALUE.names) == (8, ("code", "detail", "time_s"))
    assert CODES == {
        "other": 1000,
        "queued-again": 1001,
        "error:dns": 1100,
        "error:timeout": 1101,
        "error:refused": 1102,
        "error:dataloss": 1103,
        "error:too-large": 1104,
        "error:connection": 1105,
        "error:other": 1106,
        "dropped:forbidden": 1200,
        "dropped:unreachable": 1201,
        "dropped:unresolved": 1202,
        "dropped:refused-address": 1203,
        "dropped:undecodable": 1204,
        "dropped:scheme": 1205,
        "dropped:ignored": 1206,
        "dropped:poison": 1207,
        "dropped:elsewhere": 1208,
        "dropped:media-type": 1209,
        "dropped:size": 1210,
        "dropped:lost-from-memory": 1211,
    }


def test_every_end_that_is_counted_has_a_code() -> None:
    """What the table of stats lists as an end of a URL can be told apart later; nothing else has a code."""
    counted = {key for stat in CRAWL_COUNTERS if stat.key.startswith(("error:", "dropped:")) for key in stat.keys}
    assert counted == set(CODES) - {"other", "queued-again"}


@pytest.mark.parametrize("counter", ["status:1000", "status:99", "status:-1", "status:abc", "of-tomorrow", ""])
def test_end_without_a_code_is_other(counter: str) -> None:
    """A strange status, or an outcome that this version does not list, is kept as one that is not known."""
    _, values = unpack_outcomes([("1000-0", pack_outcome(1, counter))])
    assert read_outcome(values[0]).name == "other"


def test_code_of_a_later_version_is_told_as_it_is() -> None:
    """It has a number, if no name."""
    value = np.array([(1999, 3, 5)], dtype=VALUE)[0]
    assert read_outcome(value) == ("code-1999", 3, 5)


@given(keys=st.lists(st.integers(0, 2**64 - 1)))
def test_keys_to_forget_travel_as_they_are(keys: list[int]) -> None:
    """Eight bytes each, in order."""
    assert unpack_keys(pack_keys(keys)).tolist() == keys


@pytest.mark.parametrize("size", [1, 11, 13])
def test_torn_rows_are_refused(size: int) -> None:
    """Bytes that are no whole rows are none."""
    with pytest.raises(OutcomesFormatError, match=f"{size} bytes"):
        check_outcomes(bytes(size))
    with pytest.raises(OutcomesFormatError, match=f"{size} bytes"):
        unpack_keys(bytes(size))


def test_hash_of_a_rule_is_never_the_sign_for_none() -> None:
    """16 bits, spread, not 0."""
    hashes = {rule_hash(f"Disallow: /{number}") for number in range(5_000)}
    assert min(hashes) >= 1
    assert max(hashes) <= 0xFFFF
    assert len(hashes) > 4_700
    assert rule_hash("Disallow: /private") == rule_hash("Disallow: /private")
