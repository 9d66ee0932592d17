"""Rows of tables that an import brings: new keys are added, and of known ones the fields in `LARGER_COUNTS` rise."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgpack
import numpy as np

from bigcrawl.drum.format import KEY_TYPE, Records
from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.budgets.in_degrees import are_ranked
from bigcrawl.scheduler.budgets.placement import RECORD
from bigcrawl.scheduler.partition.fold.pld_records import InDegreeRise
from bigcrawl.scheduler.partition.tables import KINDS, LARGER_COUNTS, Tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.drum.format import KeyArray, ValueArray

ROWS_AT_ONCE = 8_192  # 64 KB of keys


class RowsFormatError(BigcrawlError):
    pass


class TableRows(NamedTuple):
    """Rows of one table: strictly ascending keys, and values unless the table is a set."""

    table: str
    keys: KeyArray
    values: ValueArray | None


def rows_to_export(table: str, records: Records) -> Iterator[TableRows]:
    """Yield records of a table in parts that fit the inbox, without turns, which only this crawl has."""
    keys, values = records
    if table == "plds" and values is not None:
        linked = values["in_degree"] > 0
        keys, placed = keys[linked], values[linked]
        values = np.zeros(len(keys), dtype=RECORD)
        values["in_degree"] = placed["in_degree"]
    for at in range(0, len(keys), ROWS_AT_ONCE):
        portion = slice(at, at + ROWS_AT_ONCE)
        yield TableRows(table, keys[portion], None if values is None else values[portion])


def pack_rows(table: str, keys: bytes, values: bytes) -> bytes:
    packed: bytes = msgpack.packb((table, keys, values))
    return packed


def unpack_rows(data: bytes) -> TableRows:
    try:
        table, key_bytes, value_bytes = msgpack.unpackb(data)
        kind = KINDS[table]
        keys = np.frombuffer(key_bytes, dtype=KEY_TYPE)
        values = None if kind.value is None else np.frombuffer(value_bytes, dtype=kind.value)
    except (ValueError, TypeError, KeyError, msgpack.UnpackException) as error:
        raise RowsFormatError(f"rows of a table cannot be read: {error!r}") from error
    if len(keys) != len(values if values is not None else keys) or (values is None and value_bytes):
        raise RowsFormatError(f"{table}: {len(keys)} keys have {len(value_bytes)} bytes of values")
    if not (keys[1:] > keys[:-1]).all():
        raise RowsFormatError(f"{table}: keys are not ascending")
    return TableRows(table, keys, values)


def merge_rows(tables: Tables, rows: TableRows) -> InDegreeRise | None:
    name, keys, values = rows
    table = tables[name]
    if values is None:
        tables.commit(table, table.check_update(keys))
        return None
    found, before = table.values(keys)
    after = before.copy()
    if name in LARGER_COUNTS:
        for field in LARGER_COUNTS[name]:
            after[field] = np.maximum(before[field], values[field])
    else:
        after[~found] = values[~found]
    changed = after != before
    if changed.any():
        tables.commit(table, table.put(keys[changed], after[changed]))
    if name != "plds":
        return None
    changed &= are_ranked(keys)
    return InDegreeRise(before["in_degree"][changed], after["in_degree"][changed])
