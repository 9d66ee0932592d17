"""The durable points of one directory, in the order of (epoch, number).

    <prefix>/e3/000000000017.1.point              a point, with the small pieces that were new at it
    <prefix>/e3/000000000017.1/run-4@0-2400000    a large piece: bytes 0 to 2,400,000 of the file run-4

An owner writes only below its own epoch. Names include the number of the attempt, because a write that timed out may
complete later, and a name must never have two contents. A point is written after all objects that it needs, so a crash
leaves complete points and unneeded objects.

A store may go back, as if restored from a backup. So a point counts only if the one before and all its objects are
still there; otherwise the next point is written whole.

A file only grows, so a point writes only its new bytes. A last piece that is not larger is merged with them, so a byte
of a file of n bytes is written about log n times. Pieces in mostly unused objects are rewritten.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import takewhile
from typing import TYPE_CHECKING

from isal import isal_zlib

from bigcrawl.exceptions import CorruptionError, TransientStoreError
from bigcrawl.store.points import DurablePoint, FilePiece, check_piece, decode_point, encode_point

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bigcrawl.store.objects import ObjectStore

    ReadFile = Callable[[str, int, int], bytes]
    WriteFile = Callable[[str, int, bytes], None]

PIECE_BYTES_MAX = 32 << 20  # limits memory, and how long one call takes
SMALL_BYTES = 64 << 10  # smaller pieces are in the point's object: each object costs money
_DEAD_PARTS = 4  # objects with less than a quarter in use are rewritten
_POINT_NAME = re.compile(r"e(\d+)/(\d+)\.(\d+)\.point")


class PointSeries:
    def __init__(self, objects: ObjectStore, prefix: str) -> None:
        self._objects = objects
        self._prefix = prefix
        self._names: set[str] = set()
        self._attempts = 0
        self._newest: DurablePoint | None = None
        self._before: DurablePoint | None = None

    def last_epoch(self) -> int:
        """Return the highest epoch that has a point, sound or not; 0 if there are no points."""
        return self.last_place()[0]

    def last_place(self) -> tuple[int, int]:
        return max(((epoch, number) for epoch, number, _ in self._listed_points()), default=(0, 0))

    def last_name(self) -> str:
        listed = self._listed_points()
        return listed[max(listed)] if listed else ""

    def find_newest(self) -> tuple[int, int] | None:
        listed = self._listed_points()
        error: CorruptionError | None = None
        for place in sorted(listed, reverse=True)[:2]:
            try:
                self._newest = self._read_point(listed[place])
            except CorruptionError as damaged:
                error = error or damaged
            else:
                return place[:2]
        if error is not None:
            raise error
        return None

    @property
    def state(self) -> bytes:
        assert self._newest is not None, "a point was found"
        return self._newest.state

    def fetch(self, write: WriteFile, is_wanted: Callable[[str], bool] | None = None) -> bytes:
        point = self._newest
        assert point is not None, "a point was found"
        wanted: dict[str, list[tuple[str, int, FilePiece]]] = {}
        for name in filter(is_wanted, point.files):
            write(name, 0, b"")
            offset = 0
            for piece in point.files[name]:
                wanted.setdefault(piece.object, []).append((name, offset, piece))
                offset += piece.length
        for object_name, rows in wanted.items():
            data = self._require_object(object_name)
            for name, offset, piece in rows:
                part = data[piece.at : piece.at + piece.length]
                check_piece(piece, part)
                write(name, offset, part)
        return point.state

    def put(self, epoch: int, number: int, state: bytes, lengths: Mapping[str, int], read: ReadFile) -> None:
        """Write a point after its new pieces; after an error it may exist.

        `number` must not decrease within an epoch.
        """
        self._attempts += 1
        name = f"{self._prefix}/e{epoch}/{number:012d}.{self._attempts}"
        files, sizes = self._reusable_pieces(lengths)
        packed: list[bytes] = []
        packed_bytes = 0
        for file, length in lengths.items():
            start = sum(piece.length for piece in files[file])
            for offset in range(start, length, PIECE_BYTES_MAX):
                data = read(file, offset, min(PIECE_BYTES_MAX, length - offset))
                crc = isal_zlib.crc32(data)
                if len(data) < SMALL_BYTES:
                    files[file].append(FilePiece(f"{name}.point", packed_bytes, len(data), crc))
                    packed.append(data)
                    packed_bytes += len(data)
                else:
                    target = f"{name}/{file}@{offset}-{len(data)}"
                    self._put_object(target, data)
                    files[file].append(FilePiece(target, 0, len(data), crc))
                    sizes[target] = len(data)
        draft = DurablePoint(f"{name}.point", state, {file: tuple(pieces) for file, pieces in files.items()}, sizes)
        point, data = encode_point(draft, b"".join(packed))
        self._put_object(point.name, data)
        self._check_there(point)
        self._before, self._newest = self._newest, point

    def _check_there(self, point: DurablePoint) -> None:
        last = self._newest or DurablePoint("", b"", {}, {})
        names = [last.name, *(point.objects - last.objects - {point.name})]
        lost = next((name for name in filter(None, names) if not self._objects.has(name)), None)
        if lost is not None:
            self._before = self._newest = None  # their objects may be lost too
            raise TransientStoreError(
                f"the store {self._objects.url} has lost {lost}, as if it were an older copy: restore the newer one, "
                f"or keep this one, to which everything is written again"
            )

    def clear(self) -> None:
        """Delete all objects that neither of the two newest points needs. No process may be reading an older point."""
        needed = {name for point in (self._before, self._newest) if point is not None for name in point.objects}
        for name in sorted(self._names - needed):
            self._objects.delete([name])
            self._names.discard(name)

    def _reusable_pieces(self, lengths: Mapping[str, int]) -> tuple[dict[str, list[FilePiece]], dict[str, int]]:
        last = self._newest or DurablePoint("", b"", {}, {})
        live: Counter[str] = Counter()
        for file in lengths:
            for piece in last.files.get(file, ()):
                live[piece.object] += piece.length
        worn = {name for name, count in live.items() if count * _DEAD_PARTS < last.sizes[name]}
        files: dict[str, list[FilePiece]] = {}
        for file, length in lengths.items():
            files[file] = pieces = list(takewhile(lambda p: p.object not in worn, last.files.get(file, ())))
            start = sum(piece.length for piece in pieces)
            while pieces and (start > length or (start < length and pieces[-1].length <= length - start)):
                start -= pieces.pop().length
        kept = {piece.object for pieces in files.values() for piece in pieces}
        return files, {name: last.sizes[name] for name in kept}

    def _listed_points(self) -> dict[tuple[int, int, int], str]:
        self._names = set(self._objects.list(self._prefix))
        start = len(self._prefix) + 1
        matches = {name: _POINT_NAME.fullmatch(name[start:]) for name in self._names}
        return {(int(match[1]), int(match[2]), int(match[3])): name for name, match in matches.items() if match}

    def _read_point(self, name: str) -> DurablePoint:
        point = decode_point(name, self._require_object(name))
        if missing := point.objects - self._names:
            raise CorruptionError(name, 0, f"an object {min(missing)}", "none")
        return point

    def _require_object(self, name: str) -> bytes:
        data = self._objects.get(name)
        if data is None:
            raise CorruptionError(name, 0, "an object", "none")
        return data

    def _put_object(self, name: str, data: bytes) -> None:
        self._names.add(name)  # first, because a failed call may still write it
        self._objects.put(name, data)
