"""Outcomes: how and when URLs ended, as nodes send them to partitions and as the table `ends` stores them.

On the wire an outcome is a row: u64 key | u16 code | u16 detail; the id of the inbox entry gives the time. The detail
identifies the line of robots.txt or the filter that ended the URL, or why its page was dropped or read only in part.
To add such a reason or rule, append its name, never in between; `bigcrawl/stats.py` gives its meaning. Codes from
`MARKS_FROM` are no outcomes but marks, by which features describe an account or a PLD.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.exceptions import BigcrawlError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray

REASONS: Final = (
    *("size", "pieces", "time", "dataloss", "decompressed-size", "decompression-ratio", "encodings", "packing"),
    *("header-bytes", "headers", "redirects", "page-bytes", "page-links", "page-link-bytes", "depth"),
    *("listing-packing", "listing-growth", "listing-bytes", "listing-tags", "listing-references", "listing-entries"),
)
_FIRST: Final = 64
"""The detail of the first reason; those below are numbers of `PAGE_RULES`."""

PAGE_RULES: Final = ("media-type", "string", "language", "charset")
"""The rules by which filters drop pages."""
MEDIA_TYPE, STRING, LANGUAGE, CHARSET = PAGE_RULES

SIZE: Final = "size"
HEADS: Final = ("heads", f"dropped:{MEDIA_TYPE}", f"dropped:{SIZE}")
"""The crawl's counters of HEADs and of the URLs that they dropped."""

OWN_ERROR = "error:other"
ABORTED = "aborted"


VALUE: Final = np.dtype([("code", "<u2"), ("detail", "<u2"), ("time_s", "<u4")])
"""The value of a URL in the table `ends`; time_s is seconds since 1970, until 2106."""

OTHER: Final = "other"
AGAIN: Final = "queued-again"
"""Not an end: the operator queued the URL again."""

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
"""The code of each counter that is not an HTTP status; a status is its own code."""

MARKS_FROM: Final = 1900

_STATUSES = range(100, 1000)
_CODE_OF = {**{f"status:{status}": status for status in _STATUSES}, **CODES}
_OTHER = CODES[OTHER]
_NAME_OF = {code: name for name, code in _CODE_OF.items()}
_ROW = struct.Struct("<QHH")
_ROWS = np.dtype([("key", "<u8"), ("code", "<u2"), ("detail", "<u2")])


def number_of(rule: str) -> int:
    """Return the number of a rule in outcomes of pages that it dropped, from 1; 0 means no rule."""
    return PAGE_RULES.index(rule) + 1


def rule_of(detail: int) -> str | None:
    return PAGE_RULES[detail - 1] if 0 < detail <= len(PAGE_RULES) else None


def detail_of(reason: str) -> int:
    return _FIRST + REASONS.index(reason) if reason in REASONS else 0


def reason_of(detail: int) -> str | None:
    """Return the reason in the detail of an outcome; None if the detail is no reason."""
    return REASONS[detail - _FIRST] if _FIRST <= detail < _FIRST + len(REASONS) else None


class OutcomesFormatError(BigcrawlError):
    pass


class Outcome(NamedTuple):
    name: str
    detail: int
    time_s: int


def pack_outcome(key: int, counter: str, detail: int = 0) -> bytes:
    return _ROW.pack(key, _CODE_OF.get(counter, _OTHER), detail)


def pack_mark(key: int, code: int, detail: int) -> bytes:
    return _ROW.pack(key, code, detail)


def pack_outcomes(ends: Iterable[tuple[int, str, int]]) -> bytes:
    return b"".join([pack_outcome(*end) for end in ends])


def check_outcomes(data: bytes) -> None:
    if len(data) % _ROW.size:
        raise OutcomesFormatError(f"{len(data)} bytes of outcomes; must be rows of {_ROW.size}")


def unpack_outcomes(entries: Sequence[tuple[str, bytes]]) -> tuple[KeyArray, npt.NDArray[Any]]:
    """Return the keys of outcomes, in order, and the values to store, from ids and rows of inbox entries."""
    rows = np.frombuffer(b"".join([data for _, data in entries]), dtype=_ROWS)
    values = np.empty(len(rows), dtype=VALUE)
    values["code"], values["detail"] = rows["code"], rows["detail"]
    counts = [len(data) // _ROW.size for _, data in entries]
    values["time_s"] = np.repeat([_seconds_of_entry(entry_id) for entry_id, _ in entries], counts)
    return rows["key"].astype(KEY_TYPE), values


def last_of_each(keys: KeyArray, values: npt.NDArray[Any]) -> tuple[KeyArray, npt.NDArray[Any]]:
    order = keys.argsort(kind="stable")
    keys = keys[order]
    is_last = np.ones(len(keys), dtype=np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_last[:-1])
    return keys[is_last], values[order[is_last]]


def pack_keys(keys: Sequence[int]) -> bytes:
    return np.array(keys, dtype=KEY_TYPE).tobytes()


def unpack_keys(data: bytes) -> KeyArray:
    if len(data) % KEY_TYPE.itemsize:
        raise OutcomesFormatError(f"{len(data)} bytes of keys; must be {KEY_TYPE.itemsize} each")
    return np.frombuffer(data, dtype=KEY_TYPE)


def read_outcome(value: npt.NDArray[Any]) -> Outcome:
    code, detail, time_s = value.item()
    return Outcome(_NAME_OF.get(code, f"code-{code}"), detail, time_s)


def rule_hash(rule: str) -> int:
    return zlib.crc32(rule.encode()) % 0xFFFF + 1


def _seconds_of_entry(entry_id: str) -> int:
    return min(int(entry_id.partition("-")[0]) // 1000, 0xFFFFFFFF)
