from __future__ import annotations

import numpy as np
import pytest

from bigcrawl.drum.batch_check import checked_columns
from bigcrawl.drum.bucket import CHECK
from bigcrawl.drum.spills.aux_file import Aux
from bigcrawl.drum.spills.spill import TupleLayout
from bigcrawl.exceptions import ContractError

LAYOUT = TupleLayout(4, None)
KEYS = np.arange(3, dtype=np.uint64)
AUX_BYTES_MAX = 2**30


def test_as_many_tuples_as_the_batch_may_have() -> None:
    """One more is refused, and the message says what to raise."""
    tuples, aux = checked_columns(LAYOUT, 3, KEYS, CHECK, None, None)
    assert (tuples.keys.tolist(), tuples.operation, len(aux)) == ([0, 1, 2], CHECK, 3)
    with pytest.raises(ContractError, match=r"3 tuples in one offer; at most 2, .*memory_bytes"):
        checked_columns(LAYOUT, 2, KEYS, CHECK, None, None)


def test_as_many_bytes_of_aux_as_a_block_may_have() -> None:
    """One more is refused: it would be half of what a header may announce, before others join it in a block."""
    lengths = np.array([AUX_BYTES_MAX, 0, 0], dtype=np.uint32)
    _, aux = checked_columns(LAYOUT, 3, KEYS, CHECK, None, Aux(bytes(AUX_BYTES_MAX), lengths))  # no page is touched
    assert len(aux.blob) == AUX_BYTES_MAX
    del aux
    with pytest.raises(ContractError, match=f"at most {AUX_BYTES_MAX}"):
        checked_columns(LAYOUT, 3, KEYS, CHECK, None, Aux(bytes(AUX_BYTES_MAX + 1), lengths))
