"""Removes HTTP's chunk framing from bodies, because other crawlers store it."""

from __future__ import annotations


def without_chunks(body: bytes) -> bytes:
    """Return a chunked body without its framing, or any other body unchanged. Takes linear time."""
    pieces: list[bytes] = []
    at = 0
    while True:
        end = body.find(b"\r\n", at, at + 1024)
        size = body[at:end].partition(b";")[0].strip() if end >= 0 else b""
        if not size or not all(digit in b"0123456789abcdefABCDEF" for digit in size) or len(size) > 8:
            return b"".join(pieces) if pieces else body
        length = int(size, 16)
        if not length:
            return b"".join(pieces)
        pieces.append(body[end + 2 : end + 2 + length])
        at = end + 2 + length + 2
