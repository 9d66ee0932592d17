"""Reads a partition's files in a process that does not own it; if the owner deletes one, all are read again."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from bigcrawl.content.copies import read_copies
from bigcrawl.drum.files import DiskFiles, Files, store_errors
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.exceptions import CorruptionError
from bigcrawl.scheduler.partition.fold.feature import all_features
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID, Manifest
from bigcrawl.scheduler.partition.manifest_log import decode_manifest
from bigcrawl.scheduler.partition.tables import Tables
from bigcrawl.scheduler.queues.epoch_directory import MANIFEST, EpochDirectory, epoch_path, list_committed
from bigcrawl.scheduler.queues.fifo import Fifo
from bigcrawl.scheduler.queues.timed import DUE, KEPT
from bigcrawl.scheduler.queues.unrunnable import PREFIX, method_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from bigcrawl.scheduler.records.queued_url import QueuedUrl

T = TypeVar("T")

NOTHING_SAID: Final[Mapping[str, Any]] = MappingProxyType({})

TRIES_MAX = 5
Look: TypeAlias = "Callable[[EpochDirectory, Manifest, Tables], T]"
_TRY_AGAIN_S = 0.05


class UrlOnDisk(NamedTuple):
    """A URL and its PLD in a partition's committed state.

    `pld_turn` is the turn of the PLD's last URL. `said` has features' results of `look_up`, by their names.
    """

    inbox_id: str
    is_seen: bool
    end: npt.NDArray[Any] | None
    in_degree: int
    turn: int
    pld_turn: int | None
    is_over_budget: bool
    said: Mapping[str, Any] = NOTHING_SAID


UNTOUCHED: Final = UrlOnDisk(NO_INBOX_ID, False, None, 0, 0, None, False)


def read_partition(
    directory: Path, key: int, pld: int, files: Files | None = None, rest: Callable[[float], None] = time.sleep
) -> UrlOnDisk | None:
    """Return the state of a URL in the newest manifest; None without a manifest here, as on another machine."""
    return _read_partition(directory, lambda _, manifest, tables: _look_up(manifest, tables, key, pld), files, rest)


class PldsOnDisk(NamedTuple):
    """Some PLDs in a partition's committed state, and the sizes of its tables.

    `plds` is an upper bound, because a changed record may count twice. `turns` is how many take URLs after the current
    one.
    """

    in_degrees: npt.NDArray[np.uint32]
    said: Mapping[str, tuple[Any, ...]]
    seen: int
    edges: int
    plds: int
    hosts: int
    turns: int


def read_plds(
    directory: Path, plds: Sequence[int], files: Files | None = None, rest: Callable[[float], None] = time.sleep
) -> PldsOnDisk | None:
    keys = np.array(plds, dtype=KEY_TYPE)

    def look(_: EpochDirectory, manifest: Manifest, tables: Tables) -> PldsOnDisk:
        in_degrees = tables.plds.values(keys)[1]["in_degree"] if len(keys) else np.zeros(0, dtype=np.uint32)
        said = {feature.name: feature.look_up_plds(tables, keys) for feature in all_features()}
        sizes = (len(tables.seen), len(tables.edges), len(tables.plds), len(tables.hosts))
        return PldsOnDisk(in_degrees, said, *sizes, manifest.turns.window)

    return _read_partition(directory, look, files, rest)


class WaitingUrl(NamedTuple):
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
) -> WaitingUrl | None:
    """Return the URL with this key if it waits on disk, in a queue named `prefix`..., and its host is not away."""

    def look(own: EpochDirectory, manifest: Manifest, _: Tables) -> WaitingUrl | None:
        names = [name for name in manifest.queues if name.startswith(prefix) and name != KEPT]
        for name in sorted(names, key=lambda name: not name.startswith(DUE)):
            queue = Fifo.restore(own, name, manifest.queues[name])
            while len(queue):
                for url in queue.pop_block():
                    if url.key == key:
                        method = method_of(name) if name.startswith(PREFIX) else ""
                        return WaitingUrl(url, name.startswith(DUE), method)
        return None

    return _read_partition(directory, look, files, rest)


def read_copies_of(
    directory: Path, files: Files | None = None, rest: Callable[[float], None] = time.sleep
) -> npt.NDArray[Any] | None:
    return _read_partition(directory, lambda _own, _manifest, tables: read_copies(tables["copies"]), files, rest)


def _read_partition(directory: Path, look: Look[T], files: Files | None, rest: Callable[[float], None]) -> T | None:
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
        manifest = decode_manifest(own.relative_path(MANIFEST), own.read(MANIFEST))
        return look(own, manifest, Tables.restore(own, manifest.tables))
    except FileNotFoundError as missing:
        raise CorruptionError(missing.filename, 0, "a file the manifest names", "no file") from missing


def _look_up(manifest: Manifest, tables: Tables, key: int, pld: int) -> UrlOnDisk:
    is_seen = bool(tables.seen.check(np.array([key], dtype=KEY_TYPE))[0])
    record, turns = tables.record("plds", pld), manifest.turns
    in_degree, pld_turn, used, mark, *_ = record.item() if record is not None else (0, 0, 0, 0)
    return UrlOnDisk(
        manifest.inbox_id,
        is_seen,
        tables.record("ends", key),
        in_degree,
        turns.turn,
        pld_turn if used else None,
        mark >= 2 * (turns.generation - turns.is_rereading),
        {feature.name: feature.look_up(tables, key, pld) for feature in all_features()},
    )
