"""The layout of sketched contents: in the map of near copies, and as rows by band."""

from __future__ import annotations

from typing import Final

import numpy as np

from bigcrawl.drum.bucket import Kind

SKETCH_WORDS: Final = 8

ALIKE: Final = 0.89
"""Two pages are near copies if their sketches show this similarity; docs/copies.md has the curve."""

_SKETCHED: Final = [("content", "<u8"), ("page", "<u8"), ("sketch", "<u8", (SKETCH_WORDS,))]
VALUE: Final = np.dtype(_SKETCHED)
ROW: Final = np.dtype([("band", "<u8"), *_SKETCHED])

NEAR: Final = Kind("near", VALUE, fresh_max=1024)
