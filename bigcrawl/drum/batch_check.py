"""Checks that the columns of a batch fit together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.drum.bucket import CHECK, CHECK_UPDATE, UPDATE
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.drum.spills.aux_file import COLUMN_BYTES_MAX, Aux
from bigcrawl.drum.spills.sections import MIXED
from bigcrawl.drum.spills.spill import Tuples
from bigcrawl.exceptions import ContractError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.drum.bucket import OpArray
    from bigcrawl.drum.format import KeyArray, ValueArray
    from bigcrawl.drum.spills.spill import TupleLayout

_AUX_BYTES_MAX = COLUMN_BYTES_MAX // 2
_OPERATIONS = frozenset({CHECK, UPDATE, CHECK_UPDATE})


def checked_columns(
    layout: TupleLayout,
    batch_max: int,
    keys: KeyArray,
    ops: int | OpArray,
    values: ValueArray | None,
    aux: Sequence[str] | Sequence[bytes] | Aux | None,
) -> tuple[Tuples, Aux]:
    """Return the columns in the write buffer's form, or raise ContractError."""
    if len(keys) > batch_max:
        raise ContractError(f"{len(keys)} tuples in one offer; at most {batch_max}, or raise memory_bytes")
    column = Aux.none(len(keys)) if aux is None else aux if isinstance(aux, Aux) else Aux.of(aux)
    if len(column.blob) > _AUX_BYTES_MAX:
        raise ContractError(f"aux of {len(column.blob)} bytes in one offer; at most {_AUX_BYTES_MAX}")
    operation, each = (ops, None) if isinstance(ops, int) else (MIXED, ops)
    lengths = {len(c) for c in (keys, column, each, values) if c is not None}
    if len(lengths) > 1:
        raise ContractError(f"keys, ops, values and aux have lengths {sorted(lengths)}; must be the same")
    if not (operation in _OPERATIONS if each is None else _OPERATIONS.issuperset(np.unique(each).tolist())):
        raise ContractError(f"operations must be among {sorted(_OPERATIONS)}: CHECK, UPDATE, CHECK_UPDATE")
    if values is not None and values.dtype != layout.value:
        raise ContractError(f"values are of {values.dtype}; the kind has {layout.value}")
    return Tuples(np.asarray(keys, dtype=KEY_TYPE), operation, each, values), column
