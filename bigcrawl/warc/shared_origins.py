"""Also remembers where other nodes of the crawl have stored payloads, as they report it.

Their payloads are known by BLAKE2b of 256 bits, because SipHash has another secret in each process. An own payload may
be reported once its record is on the medium. Until then it is in `unsent`, in the order of writing.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from bigcrawl.bounded import BoundedDict
from bigcrawl.warc.origins import COPY_BYTES_MIN, RecentOrigins

if TYPE_CHECKING:
    from bigcrawl.warc.origins import OriginFile
    from bigcrawl.warc.records import Exchange, Origin

DIGEST_BYTES: Final = 32
UNSENT_MAX: Final = 10_000
"""Payloads that wait to be reported; while there are as many, further ones are not."""


class SharedOrigins(RecentOrigins):
    def __init__(self, count_max: int) -> None:
        super().__init__(count_max)
        self._elsewhere: BoundedDict[bytes, Origin] = BoundedDict(count_max)
        self.unsent: list[tuple[bytes, Origin]] = []
        self.generation = 0  # grows when records are given up, which must not be reported then

    def __repr__(self) -> str:
        return f"<SharedOrigins elsewhere={len(self._elsewhere)} unsent={len(self.unsent)}>"

    def look_up(self, exchange: Exchange, file: OriginFile) -> tuple[bytes, Origin | None]:
        payload, origin = super().look_up(exchange, file)
        body = exchange.response_body
        if origin is None and self._elsewhere and exchange.truncated is None and len(body) >= COPY_BYTES_MIN:
            origin = self._elsewhere.get(_digest_of(body))
        return payload, origin

    def remember(self, exchange: Exchange, payload: bytes, file: OriginFile) -> Origin | None:
        origin = super().remember(exchange, payload, file)
        if origin is not None and len(self.unsent) < UNSENT_MAX:
            self.unsent.append((_digest_of(exchange.response_body), origin))
        return origin

    def forget(self) -> None:
        super().forget()
        self.generation += 1
        self.unsent.clear()

    def take_unsent(self) -> list[tuple[bytes, Origin]]:
        taken, self.unsent = self.unsent, []
        return taken

    def learn(self, digest: bytes, origin: Origin) -> None:
        """Remember a payload that another node has on its medium. The first origin of a payload stays."""
        if digest not in self._elsewhere:
            self._elsewhere.remember(digest, origin)


def _digest_of(body: bytes) -> bytes:
    return blake2b(body, digest_size=DIGEST_BYTES).digest()
