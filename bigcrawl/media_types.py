"""What a body is."""

from __future__ import annotations

import re
from typing import Final

HEADER_BYTES: Final = 1445
"""The beginning of a body that is looked at (MIME Sniffing, resource header)."""

_find_binary = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]").search


def is_binary(body: bytes) -> bool:
    """Whether the beginning of a body has a binary data byte (MIME Sniffing 3)."""
    return _find_binary(body, 0, HEADER_BYTES) is not None
