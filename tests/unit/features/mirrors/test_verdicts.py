"""The verdict on a PLD, from its samples and from which of them a greater one has."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.features.mirrors.verdicts import (
    LEAST,
    MIRROR,
    RECORD,
    SILENT,
    WINDOW,
    MirrorRecord,
    is_sample,
    mirror_verdict_of,
    octaves_of,
    sample_secret,
)
from bigcrawl.url.key import SECRET_BYTES, Keys

SHARE = 0.8
OTHER = 7


def new_record() -> MirrorRecord:
    return MirrorRecord(0, 0, 0, 0, 0, 0)


def weighed(pattern: str, record: MirrorRecord | None = None) -> tuple[MirrorRecord, int]:
    """Samples, `x` for a shared one, with the sum of what `judge` says after each."""
    record, more = record or new_record(), 0
    for letter in pattern:
        number = record.count_sample()
        if letter == "x":
            record.record_shared(number, OTHER)
        more += record.update_verdict(SHARE)
    return record, more


@pytest.mark.parametrize(
    ("pattern", "is_mirror"),
    [
        ("x" * (LEAST - 1), False),
        ("x" * LEAST, True),
        ("x" * (LEAST - 3) + ".." + "x", True),
        ("x" * (LEAST - 4) + "..." + "x", False),
        ("x" * LEAST + "." * (SILENT - 1), True),
        ("x" * LEAST + "." * SILENT, False),
        ("x" * WINDOW + ("." * (SILENT - 1) + "x") * 2, False),
        ("x" * WINDOW + "x..x" * SILENT, False),
        ("." * 1000 + "x" * 53, True),
        ("." * 1000 + "x" * 52, False),
        ("x." * 100, False),
        ("xxx." * 100, False),
        ("xxxxx." * 100, True),
        ("x" * WINDOW + "x." * WINDOW, False),
        ("x" * WINDOW + "xxx." * WINDOW, True),
    ],
)  # fmt: skip
def test_shares_make_mirrors(pattern: str, is_mirror: bool) -> None:
    """Four fifths of a window and one more, up to the last shared one; three quarters of that keep a mirror one."""
    record, more = weighed(pattern)
    assert bool(record.state & MIRROR) == is_mirror
    assert more == is_mirror


def test_what_is_heard_late_counts_where_it_belongs() -> None:
    """Of a PLD that ran ahead by a thousand samples, and of one whose samples are shared from behind."""
    for numbers in (range(1, LEAST + 1), range(LEAST, 0, -1)):
        record, _ = weighed("." * 1000)
        for number in numbers:
            record.record_shared(number, OTHER)
        assert record.update_verdict(SHARE) == 1
        assert mirror_verdict_of(np.array([record.as_tuple()], dtype=RECORD)[0]) == (True, LEAST, LEAST, OTHER)


@given(st.lists(st.integers(1, 200), max_size=150), st.randoms())
def test_the_order_and_number_of_hints_does_not_matter(numbers: list[int], chance: random.Random) -> None:
    """The window is that of the last shared sample, with a bit for each that is; only old ones vouch again."""
    record, other = weighed("." * 200)[0], weighed("." * 200)[0]
    again = numbers + numbers[: len(numbers) // 2]
    chance.shuffle(again)
    for number in numbers:
        record.record_shared(number, OTHER)
    for number in again:
        other.record_shared(number, OTHER)
    last = max(numbers, default=0)
    expected = sum(1 << last - number for number in set(numbers) if last - number < WINDOW)
    assert record.as_tuple()[:3] == other.as_tuple()[:3]
    assert all(min(numbers, default=0) == 0 or 168 < each.heard <= 200 for each in (record, other))
    assert (record.last, record.shared) == (last, expected)


def test_the_last_four_contents_are_not_new() -> None:
    """Whichever they are, each until four others have come since."""
    record, contents = new_record(), [key << 32 for key in (1, 2, 3, 0xFFFF, 7)]
    assert [record.record_content(content) for content in (*contents[:4], *contents[:4])] == [True] * 4 + [False] * 4
    assert record.record_content(contents[4])
    assert [record.record_content(content) for content in contents[1:]] == [False] * 4
    assert record.record_content(contents[0])
    assert new_record().record_content(0)
    np.array([record.as_tuple()], dtype=RECORD)


def test_samples_that_nobody_counted_are_not_shared() -> None:
    """As of a PLD whose files were lost, and that begins anew."""
    record, _ = weighed("..")
    before = record.as_tuple()
    for number in (0, 3, 2**32 - 1):
        record.record_shared(number, OTHER)
    assert record.as_tuple() == before


def test_numbers_end_where_their_field_does() -> None:
    """Nothing overflows; the record can be stored."""
    record = MirrorRecord(2**32 - 2, 0, 0, 0, 0, 0)
    assert [record.count_sample() for _ in range(3)] == [2**32 - 1] * 3
    record.record_shared(2**32 - 1, 2**64 - 1)
    np.array([record.as_tuple()], dtype=RECORD)


def test_half_of_all_contents_makes_no_mirror() -> None:
    """Of a thousand PLDs that share half of their contents by chance, few are ever taken for one, and not for long."""
    chance, mirrors, judged = random.Random(5), 0, 0
    for _ in range(1_000):
        record = new_record()
        for _ in range(200):
            number = record.count_sample()
            if chance.random() < 0.5:
                record.record_shared(number, OTHER)
            record.update_verdict(SHARE)
            judged += 1
            mirrors += record.state & MIRROR
    assert mirrors < judged / 200


def test_octaves() -> None:
    """How many bits the in-degree has."""
    degrees = [0, 1, 2, 3, 4, 7, 8, 1_000_000, 2**32 - 1]
    assert octaves_of(np.array(degrees, dtype=np.uint32)).tolist() == [degree.bit_length() for degree in degrees]


def test_one_content_in_four_is_a_sample() -> None:
    """By the highest bits of its key, if the crawl has no secret."""
    contents = [0, (1 << 62) - 1, 1 << 62, (1 << 64) - 1]
    assert [is_sample(content) for content in contents] == [True, True, False, False]


def test_samples_are_the_crawls_own() -> None:
    """A quarter in each crawl, the same on all its nodes; others choose others."""
    dice = random.Random(7)
    contents = [dice.getrandbits(64) for _ in range(8_000)]
    secrets = [sample_secret(Keys(bytes([number]) * SECRET_BYTES).of_bytes) for number in (1, 2, 1)]
    first, second, again = ([is_sample(content, secret) for content in contents] for secret in secrets)
    public = [is_sample(content) for content in contents]
    assert first == again
    assert all(secret % 2 and secret < 1 << 64 for secret in secrets)
    for one, other in itertools.combinations((first, second, public), 2):
        assert 1_850 < sum(one) < 2_150
        assert 400 < sum(map(int.__and__, one, other)) < 600, "a sixteenth is in both"
