"""The rows by which pages vote for URLs; earlier versions sent them in a separate field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

VOTED: Final = 6
ALONE: Final = VOTED

TABLE: Final = "votes"
VOTES: Final = np.dtype([("received", "<f4"), ("given", "<i4")])

KINDS: Final = {VOTED: np.dtype([("key", "<u8"), ("share", "<f4"), ("given", "<i4")])}

SHARE_MAX: Final = 1e9


def pack_votes(votes: Sequence[tuple[int, float, int]]) -> bytes:
    return np.array(votes, dtype=KINDS[VOTED]).tobytes()


def _are_shares(rows: npt.NDArray[Any]) -> bool:
    return bool(((rows["share"] >= 0) & (rows["share"] <= SHARE_MAX)).all())


SOUND: Final = {VOTED: _are_shares}
