"""Rejected inbox entries: `<state>/p<id>/rejected/<inbox id>` for a batch, with `-outcomes` for another field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.partition.fold.imported_rows import unpack_rows
from bigcrawl.scheduler.partition.fold.seen import EdgesFormatError, decode_edges
from bigcrawl.scheduler.queues.epoch_directory import REJECTED
from bigcrawl.scheduler.records.inbox_entry import ALONE, BATCH, EDGES, FORGOTTEN, OBSERVED, OUTCOMES, ROWS, TIMED
from bigcrawl.scheduler.records.observed import unpack_alone, unpack_observed
from bigcrawl.scheduler.records.outcomes import check_outcomes, unpack_keys
from bigcrawl.scheduler.records.queued_url import BatchFormatError, decode_sound_batch, decode_timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_NAME = re.compile(r"\d+-\d+(?:-(\w+))?")

_FIELDS: Final[dict[str | None, tuple[bytes, Callable[[bytes], object]]]] = {
    None: (BATCH, decode_sound_batch),
    "edges": (EDGES, decode_edges),
    "outcomes": (OUTCOMES, check_outcomes),
    "forgotten": (FORGOTTEN, unpack_keys),
    "rows": (ROWS, unpack_rows),
    "revisits": (TIMED, decode_timed),
    "alone": (ALONE, unpack_alone),
    "observed": (OBSERVED, unpack_observed),
    "votes": (ALONE, unpack_alone),  # the name in earlier versions, like the next
    "contents": (OBSERVED, unpack_observed),
}


class RejectedEntries(NamedTuple):
    partition: int
    path: Path
    field: bytes
    problem: str


def rejected_entries(crawl_directory: Path) -> Iterator[RejectedEntries]:
    for directory in sorted(crawl_directory.glob(f"p[0-9]*/{REJECTED}")):
        number = directory.parent.name[1:]
        for path in sorted(directory.iterdir()) if number.isdecimal() else ():
            name = _NAME.fullmatch(path.name)
            kind = name[1] if name else ""
            yield RejectedEntries(int(number), path, _FIELDS.get(kind, _NO_FIELD)[0], _problem_of_file(path, kind))


def _no_entry(data: bytes) -> None:
    raise BatchFormatError("its name is not that of an inbox entry")


_NO_FIELD: Final = (b"", _no_entry)


def problem_of(kind: str | None, data: bytes) -> str:
    try:
        _FIELDS.get(kind, _NO_FIELD)[1](data)
    except (BigcrawlError, EdgesFormatError) as error:
        return str(error)
    return ""


def _problem_of_file(path: Path, kind: str | None) -> str:
    try:
        return problem_of(kind, path.read_bytes())
    except OSError as error:
        return str(error)
