from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.drum.bucket import EMPTY_BUCKET, BucketState
from bigcrawl.drum.memtable import EMPTY_MEMTABLE, Memtable
from bigcrawl.drum.run import RunInfo
from bigcrawl.scheduler.partition.manifest import BatchPlace, Manifest, apply_changes, manifest_changes
from bigcrawl.scheduler.partition.manifest_log import encode_record
from bigcrawl.scheduler.partition.tables import NO_TABLES
from bigcrawl.scheduler.queues.fifo import Cursor, FifoState
from bigcrawl.scheduler.queues.parked_queues import EMPTY_PARKED, ChainExtent, ParkedState
from bigcrawl.scheduler.queues.segments import Segment
from bigcrawl.scheduler.queues.turn_state import TurnState

if TYPE_CHECKING:
    from bigcrawl.scheduler.queues.parked_queues import HostChains


def tables_of(**states: BucketState) -> dict[str, BucketState]:
    """All tables, of which these are not empty."""
    return {**NO_TABLES, **states}


FULL = Manifest(
    epoch=7,
    number=99,
    durable=90,
    inbox_id="1700000000000-3",
    tables=tables_of(
        seen=BucketState(
            (RunInfo("run-4", 1000, 0, 2**64 - 1, 6100), RunInfo("run-9", 1, 5, 5, 64)),
            Memtable.from_bytes(b"8 bytes.16 bytes........"),
        ),
        plds=BucketState((RunInfo("pld-1", 3, 1, 3, 99),), Memtable.from_bytes(b"a record of 20 bytes", 20)),
    ),
    queues={
        "queue-7-1": FifoState((Segment(3, 900, 70),), 4, Cursor(3, 8, 2), 68),
        "queue-9-1": FifoState((Segment(0, 800, 60),), 1, Cursor(0, 8, 0), 60),
        "arrived-2": FifoState((Segment(0, 700, 50),), 1, Cursor(0, 8, 0), 50),
    },
    turns=TurnState(turn=7, ordinary=70, window=16, quantum=2, generation=2, is_resting=True),
    in_degrees=b"counts",
    credits=(1, -2, 3, -4, 2),
    parked=ParkedState(
        (Segment(0, 500, 30),),
        1,
        {
            "b\u00fccher.example": {1: (ChainExtent(0, 8, 1, 9), ChainExtent(0, 99, 0, 2))},
            "b.example": {0: (ChainExtent(0, 9, 0, 1),)},
        },
    ),
    batch_number=12,
    admitted=3456,
    retained=(BatchPlace(11, 28, 300), BatchPlace(12, 500, 20)),
    already=((2**64 - 1, 2), (0, 1)),
    folded_urls=5000,
    duplicates=40,
    rejected=2,
    counts={"exact_copies": 30, "near_copies": 4, "mirrors": 5},
    untold=b"24 bytes that go astray.",
)


def test_it_names_every_file_it_needs() -> None:
    """Runs, and segments of levels and of parked URLs, each with its least length."""
    needed = FULL.files_needed()
    assert needed == {
        "run-4": 6100,
        "run-9": 64,
        "pld-1": 99,
        "queue-7-1-3": 900,
        "queue-9-1-0": 800,
        "arrived-2-0": 700,
        "park-0": 500,
    }


def test_it_knows_the_sizes_of_what_it_names() -> None:
    """Runs and the records that the log itself has; each segment once."""
    assert FULL.sizes() == (6100 + 64 + 24, 99 + 20, 900 + 800 + 700 + 500)
    assert Manifest(1).sizes() == (0, 0, 0)


def test_what_has_not_changed_is_not_told() -> None:
    """From one manifest to the next, only fields that differ are in the change, large ones in part."""
    seen = FULL.tables["seen"]
    more = Memtable.from_bytes(seen.memtable.bytes_from(0) + b"8 more..8 again.")
    queues = {**FULL.queues, "queue-8-1": FifoState((Segment(0, 90, 7),), 1, Cursor(0, 8, 0), 7)}
    del queues["queue-7-1"]
    after = replace(
        FULL,
        number=100,
        tables={**FULL.tables, "seen": BucketState(seen.runs, more)},
        queues=queues,
        turns=FULL.turns._replace(turn=8),
        counts={**FULL.counts, "mirrors": 0},
        parked=FULL.parked._replace(chains={**FULL.parked.chains, "c.example": {1: (ChainExtent(0, 30, 0, 3),)}}),
    )
    assert manifest_changes(FULL, after) == {
        "number": 100,
        "tables": {"seen": (None, 3, [b"8 more..", b"8 again."])},
        "queues": {"queue-7-1": None, "queue-8-1": queues["queue-8-1"]},
        "turns": FULL.turns._replace(turn=8),
        "mirrors": 0,
        "parked": (FULL.parked.segments, 1, [], [], [("c.example", {1: (ChainExtent(0, 30, 0, 3),)})]),
    }
    assert manifest_changes(after, after) == {}
    emptied = {**after.tables, "seen": BucketState(seen.runs[:1], EMPTY_MEMTABLE), "plds": EMPTY_BUCKET}
    assert manifest_changes(after, replace(after, tables=emptied))["tables"] == {
        "seen": (seen.runs[:1], 0, []),
        "plds": ((), 0, []),
    }
    others = {**after.tables, "seen": BucketState(seen.runs, Memtable.from_bytes(b"8 others" * 9))}
    assert manifest_changes(after, replace(after, tables=others))["tables"] == {"seen": (None, 0, [b"8 others"] * 9)}


def test_what_is_told_makes_the_manifest() -> None:
    """From nothing to one manifest and on to others, what is told is all that is needed."""
    emptied = replace(FULL, number=100, tables=NO_TABLES, queues={}, turns=TurnState())
    states = (FULL, emptied, replace(FULL, number=101))
    told = [manifest_changes(None, FULL)] + [manifest_changes(before, after) for before, after in pairwise(states)]
    for count, state in enumerate(states, 1):
        written = [msgpack.unpackb(msgpack.packb(change), use_list=False, strict_map_key=False) for change in told]
        assert apply_changes("MANIFEST", written[:count], FULL.retained) == state


chains = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from((1, 2)), max_size=6)


@given(st.lists(chains, max_size=5))
def test_changes_keep_the_turns_of_hosts(states: list[dict[str, int]]) -> None:
    """However hosts come, go, change and move, a chain of changes ends in the last state, order included."""
    manifests = [Manifest(1, number) for number in range(len(states) + 1)]
    for number, state in enumerate(states, 1):
        held: dict[str, HostChains] = {host: {1: (ChainExtent(0, 8, 0, urls),)} for host, urls in state.items()}
        manifests[number] = replace(manifests[number], parked=EMPTY_PARKED._replace(chains=held))
    told = [manifest_changes(None, manifests[0])]
    told += [manifest_changes(before, after) for before, after in pairwise(manifests)]
    made = apply_changes("MANIFEST", told, ())
    assert made == manifests[-1]
    assert list(made.parked.chains) == list(manifests[-1].parked.chains)


def test_it_stays_small_however_many_urls_wait() -> None:
    """Four million waiting URLs of one host, all parked, are less than 64 KiB of manifest."""
    extents = tuple(ChainExtent(n // 10, 100_000 * (n % 10), 0, 2048) for n in range(2000))
    segments = tuple(Segment(n, 1 << 20, 20_480) for n in range(200))
    parked = ParkedState(segments, 200, {"a.example": {1: extents}})
    assert len(encode_record(None, Manifest(1, parked=parked), [])) < 64 << 10
