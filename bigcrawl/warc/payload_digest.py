"""A digest of a payload that comes in pieces: of what follows the heads before it."""

from __future__ import annotations

from typing import Final, Protocol

HEAD_END: Final = b"\r\n\r\n"


class Digest(Protocol):
    """One of `hashlib`."""

    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


class PayloadDigest:
    """Leaves out as many heads as there are before the payload."""

    def __init__(self, digest: Digest, heads: int) -> None:
        self._digest = digest
        self._heads = heads
        self._last = b""  # the bytes that may begin the end of a head

    def update(self, piece: bytes) -> None:
        """Take the next bytes, of a head or of the payload."""
        while self._heads:
            head, end, piece = (self._last + piece).partition(HEAD_END)
            self._last = b"" if end else head[1 - len(HEAD_END) :]
            if not end:
                return
            self._heads -= 1
        self._digest.update(piece)

    def digest(self) -> bytes:
        """Return the digest of the payload so far."""
        return self._digest.digest()
