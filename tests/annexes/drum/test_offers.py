from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bigcrawl.exceptions import ContractError
from bigcrawl_drum.aux_column import Aux
from bigcrawl_drum.drum import Drum

if TYPE_CHECKING:
    from pathlib import Path

KEYS = np.arange(3, dtype=np.uint64)
AUX_BYTES_MAX = 2**30


def test_as_many_tuples_as_the_batch_may_have(tmp_path: Path) -> None:
    """One more is refused, and the message says what to raise."""
    drum = Drum(tmp_path / "drum", lambda _: None, buckets=4, memory_bytes=3 * 6 * 28)
    assert drum.batch_max == 3
    drum.check(KEYS)
    assert drum.waiting == 3
    with pytest.raises(ContractError, match=r"4 tuples in one offer; at most 3 .*memory_bytes"):
        drum.check(np.arange(4, dtype=np.uint64))


def test_as_many_bytes_of_aux_as_a_block_may_have(tmp_path: Path) -> None:
    """One more is refused: it would be half of what a header may announce, before others join it in a block."""
    drum = Drum(tmp_path / "drum", lambda _: None, buckets=4)
    for more in (0, 1):
        lengths = np.array([AUX_BYTES_MAX + more, 0, 0], dtype=np.uint32)
        column = Aux(bytes(AUX_BYTES_MAX + more), lengths)  # no page is touched
        if not more:
            drum.check(KEYS, column)
            continue
        with pytest.raises(ContractError, match=f"at most {AUX_BYTES_MAX}"):
            drum.check(KEYS, column)
