"""Rejected inbox entries: those that an owner could not decode. They are kept until the operator handles them.

    <state>/p0007/rejected/<inbox id>               a batch, or those of its URLs that have a field out of range
    <state>/p0007/rejected/<inbox id>-outcomes      another field of an entry; or -edges, -forgotten, -revisits, -rows

The files are outside the epoch directories, so they stay when the owner changes. Commands may remove them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.partition.fold.edges import EdgesFormatError, decode_edges
from bigcrawl.scheduler.partition.fold.imported_rows import unpack_rows
from bigcrawl.scheduler.queues.epoch_directory import REJECTED
from bigcrawl.scheduler.records.contents import unpack_contents
from bigcrawl.scheduler.records.inbox_entry import BATCH, CONTENTS, EDGES, FORGOTTEN, OUTCOMES, REVISITS, ROWS, VOTES
from bigcrawl.scheduler.records.outcomes import check_outcomes, unpack_keys
from bigcrawl.scheduler.records.queued_url import BatchFormatError, decode_sound_batch
from bigcrawl.scheduler.records.revisits import decode_revisits
from bigcrawl.scheduler.records.votes import unpack_votes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_NAME = re.compile(r"\d+-\d+(?:-(\w+))?")

# By the end of a file's name: the field of an inbox entry, and the function that decodes it.
_FIELDS: Final[dict[str | None, tuple[bytes, Callable[[bytes], object]]]] = {
    None: (BATCH, decode_sound_batch),
    "edges": (EDGES, decode_edges),
    "outcomes": (OUTCOMES, check_outcomes),
    "forgotten": (FORGOTTEN, unpack_keys),
    "rows": (ROWS, unpack_rows),
    "revisits": (REVISITS, decode_revisits),
    "votes": (VOTES, unpack_votes),
    "contents": (CONTENTS, unpack_contents),
}


class Rejected(NamedTuple):
    """A file below `rejected/`.

    Attributes:
        partition: the number of the partition.
        path: the path of the file.
        field: the field of an inbox entry that its bytes come from.
        problem: why the bytes cannot be decoded; empty if they can be by now.
    """

    partition: int
    path: Path
    field: bytes
    problem: str


def rejected_entries(crawl_directory: Path) -> Iterator[Rejected]:
    """Read and yield all rejected entries of a crawl, by partition, oldest first."""
    for directory in sorted(crawl_directory.glob(f"p[0-9]*/{REJECTED}")):
        number = directory.parent.name[1:]
        for path in sorted(directory.iterdir()) if number.isdecimal() else ():
            name = _NAME.fullmatch(path.name)
            kind = name[1] if name else ""
            yield Rejected(int(number), path, _FIELDS.get(kind, _NO_FIELD)[0], _problem(path, kind))


def _no_entry(data: bytes) -> None:
    raise BatchFormatError("its name is not that of an inbox entry")


_NO_FIELD: Final = (b"", _no_entry)


def problem_of(kind: str | None, data: bytes) -> str:
    """Return why an owner cannot read a field of an inbox entry, named as in a file's name; empty if it can."""
    try:
        _FIELDS.get(kind, _NO_FIELD)[1](data)
    except (BigcrawlError, EdgesFormatError) as error:
        return str(error)
    return ""


def _problem(path: Path, kind: str | None) -> str:
    try:
        return problem_of(kind, path.read_bytes())
    except OSError as error:
        return str(error)
