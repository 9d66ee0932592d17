"""Outcomes: how and when URLs ended, as nodes send them to partitions and as the table `ends` stores them.

On the wire an outcome is a row: u64 key | u16 code | u16 detail, little-endian. An inbox entry holds whole rows; its id
gives their time. The table maps a URL's key to code, detail and time (`VALUE`). The detail of a URL that robots.txt
forbids identifies the rule (`rule_hash`), and that of an answered URL the filter that dropped its page, if one did
(`bigcrawl.scheduler.rules.page_rules`). Three codes mark rows that are not outcomes: `FETCHED`, `SAME_CONTENT` and
`WILDCARD` say something about an account or a PLD.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.exceptions import BigcrawlError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray


OWN_ERROR = "error:other"  # the outcome of a fetch that failed by an error which says nothing of the host
ABORTED = "aborted"  # the outcome of a fetch that was given up because the node stops


VALUE: Final = np.dtype([("code", "<u2"), ("detail", "<u2"), ("time_s", "<u4")])
"""The value of a URL in the table `ends`; time_s is seconds since 1970 and lasts until 2106."""

OTHER: Final = "other"
AGAIN: Final = "queued-again"
"""Not an end: the operator asked for the URL to be fetched once more."""

CODES: Final[dict[str, int]] = {
    OTHER: 1000,
    AGAIN: 1001,
    # no answer
    "error:dns": 1100,
    "error:timeout": 1101,
    "error:refused": 1102,
    "error:dataloss": 1103,
    "error:too-large": 1104,
    "error:connection": 1105,
    OWN_ERROR: 1106,
    # not fetched
    "dropped:forbidden": 1200,
    "dropped:unreachable": 1201,
    "dropped:unresolved": 1202,
    "dropped:refused-address": 1203,
    "dropped:undecodable": 1204,
    "dropped:scheme": 1205,
    "dropped:ignored": 1206,
    "dropped:poison": 1207,
    "dropped:elsewhere": 1208,
    "dropped:media-type": 1209,
    "dropped:size": 1210,
    "dropped:lost-from-memory": 1211,
}
"""Code of each counter that is not an HTTP status. A status from 100 to 999 is its own code."""

FETCHED: Final = 1900
"""Takes the place of a code: the row is not an outcome. Its key is an account; its detail is the KiB of bodies that
count towards the account's bytes, see `bigcrawl.scheduler.budgets.allowances`."""

SAME_CONTENT: Final = 1901
"""Takes the place of a code: the row is not an outcome. Its key is a PLD; its detail is how many pages of a window had
the same content as another, 0 for few; see `bigcrawl.scheduler.budgets.same_content`."""

WILDCARD: Final = 1902
"""Takes the place of a code: the row is not an outcome. Its key is a PLD; its detail is 1 if DNS answers for every name
below it, 0 if no longer; see `bigcrawl.scheduler.budgets.wildcard_dns`."""

_STATUSES = range(100, 1000)
_CODE_OF = {**{f"status:{status}": status for status in _STATUSES}, **CODES}
_OTHER = CODES[OTHER]
_NAME_OF = {code: name for name, code in _CODE_OF.items()}
_ROW = struct.Struct("<QHH")
_ROWS = np.dtype([("key", "<u8"), ("code", "<u2"), ("detail", "<u2")])


class OutcomesFormatError(BigcrawlError):
    """The bytes are not whole rows of outcomes, or not whole keys."""


class Outcome(NamedTuple):
    """One outcome, as unpacked.

    Attributes:
        name: the counter; `code-<n>` for a code of a later version.
        detail: see the top of this module.
        time_s: seconds since 1970, by the clock of Redis.
    """

    name: str
    detail: int
    time_s: int


def pack_outcome(key: int, counter: str, detail: int = 0) -> bytes:
    """Return one outcome as a row of bytes for the inbox. Cost: 0.3 us."""
    return _ROW.pack(key, _CODE_OF.get(counter, _OTHER), detail)


def pack_fetched(account: int, fetched_bytes: int) -> bytes:
    """Return rows that add fetched bytes to an account, in KiB rounded up."""
    rows, rest = [], -(-fetched_bytes // 1024)
    while rest > 0:
        rows.append(_ROW.pack(account, FETCHED, min(rest, 0xFFFF)))
        rest -= 0xFFFF
    return b"".join(rows)


def pack_same_content(pld: int, same: int) -> bytes:
    """Return the row that says how many pages in a window of a PLD had the same content as another."""
    return _ROW.pack(pld, SAME_CONTENT, same)


def pack_wildcard(pld: int, *, found: bool) -> bytes:
    """Return the row that says whether DNS answers for every name below a PLD."""
    return _ROW.pack(pld, WILDCARD, found)


def pack_outcomes(ends: Iterable[tuple[int, str, int]]) -> bytes:
    """Return outcomes, each (key, counter, detail), as rows of bytes for the inbox."""
    return b"".join([pack_outcome(*end) for end in ends])


def check_outcomes(data: bytes) -> None:
    """Check that the bytes are whole rows.

    Raises:
        OutcomesFormatError: they are not.
    """
    if len(data) % _ROW.size:
        raise OutcomesFormatError(f"{len(data)} bytes of outcomes; must be rows of {_ROW.size}")


def unpack_outcomes(entries: Sequence[tuple[str, bytes]]) -> tuple[KeyArray, npt.NDArray[Any]]:
    """Return the keys of outcomes, in order, and for each the value that the table stores (`VALUE`).

    Args:
        entries: id and whole rows of each inbox entry.

    Cost: 20 us for few; for many, 0.1 us an outcome and 1 us an entry.
    """
    rows = np.frombuffer(b"".join([data for _, data in entries]), dtype=_ROWS)
    values = np.empty(len(rows), dtype=VALUE)
    values["code"], values["detail"] = rows["code"], rows["detail"]
    counts = [len(data) // _ROW.size for _, data in entries]
    values["time_s"] = np.repeat([_seconds(entry_id) for entry_id, _ in entries], counts)
    return rows["key"].astype(KEY_TYPE), values


def last_of_each(keys: KeyArray, values: npt.NDArray[Any]) -> tuple[KeyArray, npt.NDArray[Any]]:
    """Return the distinct keys, ascending, and the last value of each."""
    order = keys.argsort(kind="stable")
    keys = keys[order]
    is_last = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_last[:-1])
    return keys[is_last], values[order[is_last]]


def pack_keys(keys: Sequence[int]) -> bytes:
    """Return keys to forget, as bytes for the inbox."""
    return np.array(keys, dtype=KEY_TYPE).tobytes()


def unpack_keys(data: bytes) -> KeyArray:
    """Return the keys that `pack_keys` packed.

    Raises:
        OutcomesFormatError: the bytes are not whole keys.
    """
    if len(data) % KEY_TYPE.itemsize:
        raise OutcomesFormatError(f"{len(data)} bytes of keys; must be {KEY_TYPE.itemsize} each")
    return np.frombuffer(data, dtype=KEY_TYPE)


def read_outcome(value: npt.NDArray[Any]) -> Outcome:
    """Return the outcome in one value of the table."""
    code, detail, time_s = value.item()
    return Outcome(_NAME_OF.get(code, f"code-{code}"), detail, time_s)


def rule_hash(rule: str) -> int:
    """Return the detail of a URL that this robots.txt line forbids: 16 bits, never 0."""
    return zlib.crc32(rule.encode()) % 0xFFFF + 1


def _seconds(entry_id: str) -> int:
    return min(int(entry_id.partition("-")[0]) // 1000, 0xFFFFFFFF)
