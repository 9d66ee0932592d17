from __future__ import annotations

from typing import Final, Protocol

HEAD_END: Final = b"\r\n\r\n"


class Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


class PayloadDigest:
    def __init__(self, digest: Digest, heads: int) -> None:
        self._digest = digest
        self._heads = heads
        self._last = b""  # may begin the end of a head

    def update(self, piece: bytes) -> None:
        while self._heads:
            head, end, piece = (self._last + piece).partition(HEAD_END)
            self._last = b"" if end else head[1 - len(HEAD_END) :]
            if not end:
                return
            self._heads -= 1
        self._digest.update(piece)

    def digest(self) -> bytes:
        return self._digest.digest()
