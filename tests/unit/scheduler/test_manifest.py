from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.drum.fresh import EMPTY_FRESH, FreshKeys
from bigcrawl.drum.run import RunInfo
from bigcrawl.scheduler.front_queues import EMPTY_LEVEL, Cursor, LevelState
from bigcrawl.scheduler.manifest import BatchPlace, Manifest, apply_changes, changes
from bigcrawl.scheduler.manifest_log import encode_record
from bigcrawl.scheduler.parked_queues import EMPTY_PARKED, Extent, ParkedState
from bigcrawl.scheduler.segments import Segment

if TYPE_CHECKING:
    from bigcrawl.scheduler.parked_queues import HostChains

FULL = Manifest(
    epoch=7,
    number=99,
    durable=90,
    inbox_id="1700000000000-3",
    runs=(RunInfo("run-4", 1000, 0, 2**64 - 1), RunInfo("run-9", 1, 5, 5)),
    fresh=FreshKeys.from_bytes(b"8 bytes.16 bytes........"),
    levels=(EMPTY_LEVEL, LevelState((Segment(3, 900, 70),), 4, Cursor(3, 8, 2), 68), *(EMPTY_LEVEL,) * 3),
    credits=(1, -2, 3, -4, 2),
    parked=ParkedState(
        (Segment(0, 500, 30),),
        1,
        {
            "b\u00fccher.example": {1: (Extent(0, 8, 1, 9), Extent(0, 99, 0, 2))},
            "b.example": {0: (Extent(0, 9, 0, 1),)},
        },
    ),
    batch_number=12,
    admitted=3456,
    retained=(BatchPlace(11, 28, 300), BatchPlace(12, 500, 20)),
    already=((2**64 - 1, 2), (0, 1)),
    folded_urls=5000,
    duplicates=40,
    rejected=2,
)


def test_it_names_every_file_it_needs() -> None:
    """Runs, and segments of levels and of parked URLs, each with its least length."""
    needed = FULL.files_needed()
    assert set(needed) == {"run-4", "run-9", "queue-1-3", "park-0"}
    assert (needed["queue-1-3"], needed["park-0"], needed["run-9"]) == (900, 500, 64)


def test_what_has_not_changed_is_not_told() -> None:
    """From one manifest to the next, only fields that differ are in the change, large ones in part."""
    after = replace(
        FULL,
        number=100,
        fresh=FreshKeys.from_bytes(FULL.fresh.bytes_from(0) + b"8 more..8 again."),
        levels=(*FULL.levels[:4], LevelState((), 1, Cursor(1, 8, 0), 0)),
        parked=FULL.parked._replace(chains={**FULL.parked.chains, "c.example": {1: (Extent(0, 30, 0, 3),)}}),
    )
    assert changes(FULL, after) == {
        "number": 100,
        "fresh": (3, [b"8 more..", b"8 again."]),
        "levels": {4: LevelState((), 1, Cursor(1, 8, 0), 0)},
        "parked": (FULL.parked.segments, 1, [], [], [("c.example", {1: (Extent(0, 30, 0, 3),)})]),
    }
    assert changes(after, after) == {}
    assert changes(after, replace(after, fresh=EMPTY_FRESH)) == {"fresh": (0, [])}
    assert changes(after, replace(after, fresh=FreshKeys.from_bytes(b"8 others" * 9))) == {
        "fresh": (0, [b"8 others"] * 9)
    }


def test_fresh_keys_of_a_step_may_be_one_string() -> None:
    """A log in which each step's keys are one string is read as what it is."""
    told = [
        changes(None, Manifest(1)),
        {"fresh": (0, (b"8 bytes.", b"16 bytes........"))},
        {"fresh": (2, (b"8 more..",))},
    ]
    assert apply_changes(told, ()).fresh.bytes_from(0) == b"8 bytes.16 bytes........8 more.."
    told = [*told, {"fresh": (0, ())}, {"fresh": (0, (b"8 others",))}]
    assert apply_changes(told, ()).fresh == FreshKeys.from_bytes(b"8 others")


chains = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from((1, 2)), max_size=6)


@given(st.lists(chains, max_size=5))
def test_changes_keep_the_turns_of_hosts(states: list[dict[str, int]]) -> None:
    """However hosts come, go, change and move, a chain of changes ends in the last state, order included."""
    manifests = [Manifest(1, number) for number in range(len(states) + 1)]
    for number, state in enumerate(states, 1):
        held: dict[str, HostChains] = {host: {1: (Extent(0, 8, 0, urls),)} for host, urls in state.items()}
        manifests[number] = replace(manifests[number], parked=EMPTY_PARKED._replace(chains=held))
    told = [changes(None, manifests[0])]
    told += [changes(before, after) for before, after in pairwise(manifests)]
    made = apply_changes(told, ())
    assert made == manifests[-1]
    assert list(made.parked.chains) == list(manifests[-1].parked.chains)


def test_it_stays_small_however_many_urls_wait() -> None:
    """Four million waiting URLs of one host, all parked, are less than 64 KiB of manifest."""
    extents = tuple(Extent(n // 10, 100_000 * (n % 10), 0, 2048) for n in range(2000))
    segments = tuple(Segment(n, 1 << 20, 20_480) for n in range(200))
    parked = ParkedState(segments, 200, {"a.example": {1: extents}})
    assert len(encode_record(None, Manifest(1, parked=parked), [])) < 64 << 10
