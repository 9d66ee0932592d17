"""Reads what a partition's files say about URLs and PLDs, in a process that does not own the partition.

It reads the newest manifest, and then the few blocks of runs that may contain the keys. The owner goes on meanwhile. It
may replace the manifest and delete files that the old one names before they are read. So if a file is missing,
everything is read again from the start.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from bigcrawl.content.copies import read_copies
from bigcrawl.drum.files import DiskFiles, store_errors
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.exceptions import CorruptionError
from bigcrawl.scheduler.budgets.mirrors import mirror_verdict_of
from bigcrawl.scheduler.budgets.traps import trap_verdict_of
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID
from bigcrawl.scheduler.partition.manifest_log import decode_manifest
from bigcrawl.scheduler.partition.tables import Tables
from bigcrawl.scheduler.queues.epoch_directory import MANIFEST, EpochDirectory, epoch_path, list_committed
from bigcrawl.scheduler.queues.fifo import Fifo
from bigcrawl.scheduler.queues.revisits import DUE
from bigcrawl.scheduler.queues.unrunnable import PREFIX, method_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any

    import numpy.typing as npt

    from bigcrawl.drum.bucket import Bucket
    from bigcrawl.drum.files import Files
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.mirrors import MirrorVerdict
    from bigcrawl.scheduler.budgets.traps import TrapVerdict
    from bigcrawl.scheduler.partition.manifest import Manifest
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

T = TypeVar("T")

TRIES_MAX = 5
Look: TypeAlias = "Callable[[EpochDirectory, Manifest, Tables], T]"
_TRY_AGAIN_S = 0.05  # enough for an owner to delete some ten files


class UrlOnDisk(NamedTuple):
    """A URL and its PLD in a partition's committed state.

    Attributes:
        inbox_id: the last inbox entry that was folded into this state.
        is_seen: whether the URL's key is in URLSeen.
        end: the URL's value in the table `ends`; None if it has none.
        in_degree: how many PLDs are known to link to the URL's PLD.
        turn: the current turn, see `bigcrawl.scheduler.queues.turns`.
        pld_turn: the turn in which the PLD's last URL was placed; None if none was ever placed.
        is_over_budget: whether URLs of the PLD wait over budget.
        trap: the verdict on the PLD as a trap; None if none of its URLs ever looked like a trap's.
        visits: how often its page was visited, if it is visited again; else 0.
        mirror: the verdict on the PLD as a mirror; None if no sample of its contents was ever counted.
    """

    inbox_id: str
    is_seen: bool
    end: npt.NDArray[Any] | None
    in_degree: int
    turn: int
    pld_turn: int | None
    is_over_budget: bool
    trap: TrapVerdict | None = None
    visits: int = 0
    mirror: MirrorVerdict | None = None


UNTOUCHED: Final = UrlOnDisk(NO_INBOX_ID, False, None, 0, 0, None, False)
"""What a partition says of any URL before its first step, which makes its files."""


def read_partition(
    directory: Path, key: int, pld: int, files: Files | None = None, rest: Callable[[float], None] = time.sleep
) -> UrlOnDisk | None:
    """Return what the newest manifest of a partition says about a URL.

    Args:
        directory: the directory of the partition.
        key: the key of the URL.
        pld: the key of its PLD.
        files: the file system; the real one by default.
        rest: waits for a number of seconds before another try.

    Returns:
        None if the partition has no manifest: nothing was ever committed, or its files are on another machine.

    Raises:
        CorruptionError: a file is damaged, or was missing in every try.
        TransientStoreError: the disk failed.
    """
    return _read(directory, lambda _, manifest, tables: _look_up(manifest, tables, key, pld), files, rest)


class PldsOnDisk(NamedTuple):
    """Some PLDs in a partition's committed state, and the sizes of its tables.

    Attributes:
        in_degrees: of each PLD asked for, in order: how many PLDs are known to link to it.
        traps: of each PLD asked for, in order: the verdict on it as a trap, or None.
        mirrors: likewise, as a mirror.
        seen: keys in URLSeen.
        edges: links from one PLD to another, each once.
        plds: PLDs that are linked to, or that URLs were placed of; at most, because a changed one may count twice.
        hosts: hosts whose robots.txt was charged to their PLD's budget.
    """

    in_degrees: npt.NDArray[np.uint32]
    traps: tuple[TrapVerdict | None, ...]
    mirrors: tuple[MirrorVerdict | None, ...]
    seen: int
    edges: int
    plds: int
    hosts: int


def read_plds(
    directory: Path, plds: Sequence[int], files: Files | None = None, rest: Callable[[float], None] = time.sleep
) -> PldsOnDisk | None:
    """Return what the newest manifest of a partition says about PLDs, given by their keys.

    Cost: the manifest, and some blocks of each run of the tables `plds`, `traps` and `samples` if any PLD is asked for.

    Returns, and raises: as `read_partition`.
    """
    keys = np.array(plds, dtype=KEY_TYPE)

    def look(_: EpochDirectory, __: Manifest, tables: Tables) -> PldsOnDisk:
        in_degrees = tables.plds.values(keys)[1]["in_degree"] if len(keys) else np.zeros(0, dtype=np.uint32)
        traps = _verdicts(tables.traps, keys, trap_verdict_of)
        mirrors = _verdicts(tables.samples, keys, mirror_verdict_of)
        return PldsOnDisk(
            in_degrees, traps, mirrors, len(tables.seen), len(tables.edges), len(tables.plds), len(tables.hosts)
        )

    return _read(directory, look, files, rest)


class Waiting(NamedTuple):
    """A URL that waits in a queue on disk.

    Attributes:
        url: the URL.
        for_time: whether it waits for the time of its next visit.
        for_method: the method that its owner's spider lacks, see `queues.unrunnable`; empty if it waits for none.
    """

    url: QueuedUrl
    for_time: bool
    for_method: str = ""


def find_waiting(
    directory: Path,
    key: int,
    files: Files | None = None,
    rest: Callable[[float], None] = time.sleep,
    *,
    prefix: str = "",
) -> Waiting | None:
    """Return the URL with a key that waits on disk, but not behind a host that is away; None if there is none.

    Cost: all queues may be read whose names begin with `prefix`, those by time first: a second for half a million URLs.

    Raises: as `read_partition`.
    """

    def look(own: EpochDirectory, manifest: Manifest, _: Tables) -> Waiting | None:
        names = [name for name in manifest.queues if name.startswith(prefix)]
        for name in sorted(names, key=lambda name: not name.startswith(DUE)):
            queue = Fifo.restore(own, name, manifest.queues[name])
            while len(queue):
                for url in queue.pop_block():
                    if url.key == key:
                        method = method_of(name) if name.startswith(PREFIX) else ""
                        return Waiting(url, name.startswith(DUE), method)
        return None

    return _read(directory, look, files, rest)


def read_copies_of(
    directory: Path, files: Files | None = None, rest: Callable[[float], None] = time.sleep
) -> npt.NDArray[Any] | None:
    """Return the pages that are copies of others, by the contents in a partition; of `bigcrawl.content.copies.COPY`.

    Cost: reads the whole table; 28 bytes of memory a copy.

    Returns, and raises: as `read_partition`.
    """
    return _read(directory, lambda _own, _manifest, tables: read_copies(tables.copies), files, rest)


def _read(
    directory: Path,
    look: Look[T],
    files: Files | None,
    rest: Callable[[float], None],
) -> T | None:
    files = files or DiskFiles()
    for left in reversed(range(TRIES_MAX)):
        try:
            with store_errors(directory):
                return _read_newest(directory, look, files)
        except CorruptionError:
            if not left:
                raise
        rest(_TRY_AGAIN_S)
    raise AssertionError("the last try returns or raises")


def _read_newest(directory: Path, look: Look[T], files: Files) -> T | None:
    committed = list_committed(directory, files)
    if not committed:
        return None
    own = EpochDirectory(epoch_path(directory, committed[0]), committed[0], files)
    try:
        manifest = decode_manifest(own.place(MANIFEST), own.read(MANIFEST))
        return look(own, manifest, Tables.restore(own, manifest.tables))
    except FileNotFoundError as missing:
        raise CorruptionError(missing.filename, 0, "a file the manifest names", "no file") from missing


def _look_up(manifest: Manifest, tables: Tables, key: int, pld: int) -> UrlOnDisk:
    is_seen = bool(tables.seen.check(np.array([key], dtype=KEY_TYPE))[0])
    record, turns = _value_of(tables.plds, pld), manifest.turns
    in_degree, pld_turn, used, mark, *_ = record.item() if record is not None else (0, 0, 0, 0)
    return UrlOnDisk(
        manifest.inbox_id,
        is_seen,
        _value_of(tables.ends, key),
        in_degree,
        turns.turn,
        pld_turn if used else None,
        mark >= 2 * (turns.generation - turns.is_rereading),
        None if (trap := _value_of(tables.traps, pld)) is None else trap_verdict_of(trap),
        0 if (visits := _value_of(tables.visits, key)) is None else int(visits["number"]),
        None if (mirror := _value_of(tables.samples, pld)) is None else mirror_verdict_of(mirror),
    )


def _verdicts(table: Bucket, keys: KeyArray, verdict_of: Callable[[Any], T]) -> tuple[T | None, ...]:
    if not len(keys):
        return ()
    found, records = table.values(keys)
    return tuple(verdict_of(record) if there else None for there, record in zip(found, records, strict=True))


def _value_of(table: Bucket, key: int) -> npt.NDArray[Any] | None:
    found, values = table.values(np.array([key], dtype=KEY_TYPE))
    return values[0] if found[0] else None
