"""What an owner could not read of its inbox, and keeps below its partition's `rejected/` until somebody has a look.

    <state>/p0007/rejected/<inbox id>               a batch
    <state>/p0007/rejected/<inbox id>-outcomes      another field of an entry; or -edges, -forgotten

They lie outside the epochs: whoever owns the partition, the files are those of its next owner as well, and commands may
remove them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.partition.edges import EdgesFormatError, decode_edges
from bigcrawl.scheduler.queues.epoch_directory import REJECTED
from bigcrawl.scheduler.records.inbox_entry import BATCH, EDGES, FORGOTTEN, OUTCOMES
from bigcrawl.scheduler.records.outcomes import check_outcomes, unpack_keys
from bigcrawl.scheduler.records.queued_url import BatchFormatError, decode_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_NAME = re.compile(r"\d+-\d+(?:-(\w+))?")

# By what stands behind the id: the field of an inbox entry, and who reads it.
_FIELDS: Final[dict[str | None, tuple[bytes, Callable[[bytes], object]]]] = {
    None: (BATCH, decode_batch),
    "edges": (EDGES, decode_edges),
    "outcomes": (OUTCOMES, check_outcomes),
    "forgotten": (FORGOTTEN, unpack_keys),
}


class Rejected(NamedTuple):
    """A file below `rejected/`.

    Attributes:
        partition: whose.
        path: of the file.
        field: of an inbox entry, where its bytes belong.
        problem: why it cannot be read; empty when it can be by now.
    """

    partition: int
    path: Path
    field: bytes
    problem: str


def rejected_entries(crawl_directory: Path) -> Iterator[Rejected]:
    """Yield all rejected entries of a crawl, by partition, oldest first; reads each file."""
    for directory in sorted(crawl_directory.glob(f"p[0-9]*/{REJECTED}")):
        number = directory.parent.name[1:]
        for path in sorted(directory.iterdir()) if number.isdecimal() else ():
            name = _NAME.fullmatch(path.name)
            field, read = _FIELDS.get(name[1] if name else "", (b"", _no_entry))
            yield Rejected(int(number), path, field, _problem(path, read))


def _no_entry(data: bytes) -> None:
    raise BatchFormatError("its name is not that of an inbox entry")


def _problem(path: Path, read: Callable[[bytes], object]) -> str:
    try:
        read(path.read_bytes())
    except (BigcrawlError, EdgesFormatError, OSError) as error:
        return str(error)
    return ""
