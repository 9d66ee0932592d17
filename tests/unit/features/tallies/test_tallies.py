"""What a node counts: bounded, the same after a round trip, and the same whether one node has counted it or several."""

from __future__ import annotations

import random

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from isal import isal_zlib

from bigcrawl.features.tallies.gaps import RATIOS, TIGHTEST_MAX, GapCounts, NamedGap
from bigcrawl.features.tallies.names import (
    REGISTERS,
    DistinctCounter,
    DistinctFormatError,
    FrequentNames,
    SampledCounts,
)
from bigcrawl.features.tallies.tallies import (
    MALFORMED,
    MEDIA_TYPES_MAX,
    NO_ANSWER,
    NO_TYPE,
    PLDS_MAX,
    VERSION,
    Tallies,
    TalliesFormatError,
    encoding_of,
    media_type_of,
)


def names(count: int) -> list[str]:
    return [f"host{number}.example" for number in range(count)]


@pytest.mark.parametrize("count", [0, 1, 2, 10, 300, 3_000, 20_000, 100_000])
def test_distinct_names_are_counted_within_four_standard_errors(count: int) -> None:
    distinct = DistinctCounter()
    for name in names(count):
        distinct.add(name)
        distinct.add(name)
    assert abs(distinct.count - count) <= max(2, count * 4 * 0.0163) * (count > 0)


def test_distinct_names_of_two_nodes_are_those_of_one() -> None:
    both, first, second = DistinctCounter(), DistinctCounter(), DistinctCounter()
    for number, name in enumerate(names(2_000)):
        both.add(name)
        (first if number % 3 else second).add(name)
        if number % 5 == 0:
            first.add(name)
    first.add_all(second)
    assert first.to_bytes() == both.to_bytes()


@pytest.mark.parametrize("registers", [b"", bytes(REGISTERS - 1), bytes(REGISTERS - 1) + b"\xff"])
def test_registers_that_cannot_be_are_refused(registers: bytes) -> None:
    with pytest.raises(DistinctFormatError):
        DistinctCounter(registers)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=300))
def test_frequent_names_lose_no_count_and_claim_none(came: list[tuple[int, int]]) -> None:
    """Kept and others together are all; no name counts more than it came; what is most frequent by far is kept."""
    frequent = FrequentNames(8)
    for number, amount in came:
        frequent.count_name(str(number), amount)
    rows = frequent.rows()
    assert len(frequent) == len(rows) <= 8
    assert sum(row.times for row in rows) + frequent.others == len(came)
    assert sum(row.amount for row in rows) + frequent.others_amount == sum(amount for _, amount in came)
    assert all(row.times <= sum(str(number) == row.name for number, _ in came) for row in rows)


def test_a_frequent_name_is_kept_among_many_rare_ones() -> None:
    frequent = FrequentNames(16)
    for name in names(5_000):
        frequent.count_name("often", 1)
        frequent.count_name(name, 1)
    assert frequent.rows()[0][:2] == ("often", 5_000)


def test_a_sample_has_exact_counts_and_is_fair() -> None:
    """However many names come, those in the sample have been counted from the first time on."""
    sample, came = SampledCounts(64), dict[str, int]()
    dice = random.Random(7)
    for _ in range(20_000):
        name = f"pld{int(dice.paretovariate(0.5)) % 3_000}.example"
        came[name] = came.get(name, 0) + 1
        sample.count_name(name)
    assert 20 <= len(sample.counts) <= 64
    assert {name: came[name] for name in sample.counts} == dict(sample.counts)
    assert len(came) / 2 < len(sample.counts) << sample.depth < len(came) * 2


def test_samples_of_two_nodes_are_that_of_one() -> None:
    both, first, second = SampledCounts(32), SampledCounts(32), SampledCounts(32)
    for number, name in enumerate(names(1_000) * 3):
        both.count_name(name)
        (first if number % 7 else second).count_name(name)
    first.add_all(second.counts, second.depth)
    thinned = SampledCounts(32)
    thinned.add_all(both.counts, first.depth)
    assert first.counts == thinned.counts


def test_gaps_are_counted_by_how_many_times_they_were_as_long_as_they_had_to_be() -> None:
    gaps = GapCounts()
    for gap_ms in (0, 998, 999, 1_000, 1_019, 1_020, 2_500, 200_000):
        gaps.count_gap("a.example", gap_ms, 1_000)
    gaps.count_gap("b.example", 5, 0)
    counts = dict(zip(("short", *RATIOS), gaps.counts, strict=True))
    assert {bound: count for bound, count in counts.items() if count} == {"short": 2, 1.0: 3, 1.02: 1, 2.0: 1, 100.0: 1}
    assert gaps.tightest == [NamedGap("a.example", 0, 1_000)]


def test_the_tightest_gap_of_each_name_is_kept_and_names_are_bounded() -> None:
    dice = random.Random(3)
    one, other, least = GapCounts(), GapCounts(), dict[str, float]()
    for _ in range(4_000):
        name, gap_ms = f"{dice.randrange(200)}.example", dice.randrange(1_000, 90_000)
        (one if dice.random() < 0.5 else other).count_gap(name, gap_ms, 1_000)
        least[name] = min(least.get(name, 1e9), gap_ms)
    one.add_all(other.counts, other.tightest)
    assert sum(one.counts) == 4_000
    wanted = sorted((gap_ms, name) for name, gap_ms in least.items())[:TIGHTEST_MAX]
    assert [(gap.gap_ms, gap.name) for gap in one.tightest] == wanted


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (b"text/html; charset=utf-8", "text/html"),
        (b" Application/PDF ", "application/pdf"),
        (b"image/svg+xml", "image/svg+xml"),
        (None, NO_TYPE),
        (b"  ", NO_TYPE),
        (b"html", MALFORMED),
        (b"text/<script>alert(1)</script>", MALFORMED),
        (b"text/" + b"x" * 61, MALFORMED),
        ("text/h\u00e4".encode(), MALFORMED),
    ],
)
def test_media_types_are_read_without_parameters_and_bounded(header: bytes | None, name: str) -> None:
    assert media_type_of(header) == name


def test_encodings_are_read_and_bounded() -> None:
    assert [encoding_of(header) for header in (b"GZIP", b"gzip, br", b"<b>", b"a" * 30)] == [
        "gzip",
        "gzip, br",
        MALFORMED,
        MALFORMED,
    ]


def filled(seed: int, plds: int = 300) -> Tallies:
    """Tallies of a node that has met hostile servers too."""
    tallies, dice = Tallies(), random.Random(seed)
    for number in range(plds * 3):
        pld = f"pld{dice.randrange(plds)}.example"
        tallies.record_page(f"www.{pld}", pld, f"192.0.2.{number % 250}", 1_000)
        tallies.record_answer(200, b"x/%d" % number, b"gzip" if number % 2 else None, number)
        tallies.host_gaps.count_gap(pld, 1_000 + dice.randrange(5_000), 1_000)
        tallies.server_gaps.count_gap("192.0.2.1", 500 + number, 500)
    tallies.record_answer(404, b"text/html", None, 77)
    tallies.record_answer(200, b"text/html", None, 1 << 50)
    tallies.record_unpacked(0, 5_000)
    tallies.record_robots(200, 300)
    tallies.record_robots(None, 0)
    tallies.record_sent(30, is_elsewhere=True)
    tallies.record_sent(12, is_elsewhere=False)
    tallies.urls_repeated, tallies.look_ups, tallies.sent_bytes = 5, 6, 7
    return tallies


def test_tallies_are_the_same_after_a_round_trip() -> None:
    tallies = filled(1)
    data = tallies.to_bytes()
    read = Tallies.from_bytes(data)
    assert read.to_bytes() == data
    assert read.ok_answers == 901
    assert (read.html, read.other_answers, read.other_bytes, read.urls_sent, read.urls_sent_elsewhere) == (
        *(1, 1, 77),
        *(42, 30),
    )
    assert {row.name: row.times for row in read.robots.rows()} == {"200": 1, NO_ANSWER: 1}


def test_tallies_of_many_names_are_small() -> None:
    """Whatever servers and pages claim: rows are bounded, and so is what Redis keeps."""
    tallies = filled(2, plds=8_000)
    assert len(tallies.media_types) <= MEDIA_TYPES_MAX
    assert len(tallies.pages_by_pld) <= PLDS_MAX
    assert len(tallies.sampled_plds.counts) <= PLDS_MAX
    assert len(tallies.to_bytes()) < 40_000


def test_sums_are_those_of_the_parts() -> None:
    one, other = filled(3), filled(4)
    total = Tallies()
    total.add(one)
    total.add(other)
    assert total.ok_answers == one.ok_answers + other.ok_answers
    assert sum(total.host_gaps.counts) == sum(one.host_gaps.counts) + sum(other.host_gaps.counts)
    assert total.urls_sent_elsewhere == 60
    assert total.plds.count >= max(one.plds.count, other.plds.count)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no tallies",
        isal_zlib.compress(msgpack.packb([VERSION + 1, {}])),
        isal_zlib.compress(msgpack.packb([VERSION, {}])),
        isal_zlib.compress(msgpack.packb("x")),
        Tallies().to_bytes()[:-9],
        isal_zlib.compress(bytes(100 << 20)),
    ],
)
def test_bytes_that_are_no_tallies_are_refused(data: bytes) -> None:
    with pytest.raises(TalliesFormatError):
        Tallies.from_bytes(data)


def test_beginning_anew_forgets_everything() -> None:
    tallies = filled(5)
    tallies.reset()
    assert tallies.to_bytes() == Tallies().to_bytes()
