"""Exhibits of `Feature.BODIES` and `Feature.BROKEN`: framings, codings and failures of bodies."""

from __future__ import annotations

import gzip
import sys
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import brotli  # type: ignore[import-untyped]

from bigcrawl_simweb.basics.answer import Answer, Fault, Framing
from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.exhibits.exhibit import ABORTED, HTML, Exhibit, ExhibitContext

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable

_BOMB_BYTES: Final = 50_000_000
_BLANKS: Final = b" " * 1_000_000
_LARGE_CHARACTERS: Final = 1_500_000
_SLOW_BYTES_PER_S: Final = 4_000
_DRIPPING_BYTES_PER_S: Final = 200
_LATE_MS: Final = 1_200
# A body breaks off after the link, well before the end.
_BREAK_AT: Final = 1_000


def _body(stand: ExhibitContext) -> bytes:
    return stand.html(stand.link).encode()


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _brotli(data: bytes) -> bytes:
    packed: bytes = brotli.compress(data, quality=9)  # a higher quality would take fifteen times as long for a bomb
    return packed


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def _two_gzip_members(data: bytes) -> bytes:
    half = len(data) // 2
    return _gzip(data[:half]) + _gzip(data[half:])


def _answer_sent(**fields: Any) -> Callable[[ExhibitContext], Answer]:
    return lambda stand: Answer(200, HTML, _body(stand), **fields)


def _answer_encoded(name: str, encode: Callable[[bytes], bytes], **fields: Any) -> Callable[[ExhibitContext], Answer]:
    return lambda stand: Answer(200, (*HTML, ("Content-Encoding", name)), encode(_body(stand)), **fields)


def _large_answer(stand: ExhibitContext) -> Answer:
    return Answer(200, HTML, stand.html(stand.link + stand.filler(_LARGE_CHARACTERS)).encode())


def _answer_with_wrong_length(extra_bytes: int) -> Callable[[ExhibitContext], Answer]:
    """Send a Content-Length that is wrong by `extra_bytes`."""

    def answer(stand: ExhibitContext) -> Answer:
        body = _body(stand)
        return Answer(200, HTML, body, announced_bytes=len(body) + extra_bytes)

    return answer


def _answer_with_bomb(name: str, encode: Callable[[bytes], bytes]) -> Callable[[ExhibitContext], Answer]:
    """Send a small body that decompresses to a large one; cached, because compressing it is slow."""

    @lru_cache(1)
    def bomb() -> bytes:
        return encode(_BLANKS * (_BOMB_BYTES // len(_BLANKS)))

    return lambda _: Answer(200, (*HTML, ("Content-Encoding", name)), bomb())


def _body_exhibit(slug: str, answer: Callable[[ExhibitContext], Answer], lesson: str, **more: Any) -> Exhibit:
    return Exhibit(slug=slug, feature=Feature.BODIES, answer=answer, lesson=lesson, **more)


def _broken_exhibit(slug: str, answer: Callable[[ExhibitContext], Answer], lesson: str, **more: Any) -> Exhibit:
    fields: dict[str, Any] = {
        "is_certain": False,
        "is_whole": False,
        "is_retriable": True,
        "statuses": frozenset({200, ABORTED}),
    }
    return Exhibit(slug=slug, feature=Feature.BROKEN, answer=answer, lesson=lesson, **(fields | more))


_READS: Final = "reads it"
_DECODES: Final = "decodes it"
_MAY_DECODE: Final = "decodes it, if it announced that it could"
_GIVES_UP: Final = "gives up after its timeout"
_KNOWS: Final = "knows that it has not got all"

BODIES: Final = (
    _body_exhibit("chunked", _answer_sent(framing=Framing.CHUNKED), _READS),
    _body_exhibit("closing", _answer_sent(framing=Framing.CLOSE), "reads to the end of the connection"),
    _body_exhibit("old-http", _answer_sent(framing=Framing.OLD), "reads HTTP/1.0"),
    _body_exhibit("late", _answer_sent(delay_ms=_LATE_MS), "waits"),
    _body_exhibit("slow", _answer_sent(bytes_per_s=_SLOW_BYTES_PER_S), "waits"),
    _body_exhibit("gzip", _answer_encoded("gzip", _gzip), _DECODES),
    _body_exhibit("old-gzip", _answer_encoded("x-gzip", _gzip), "knows the old name", is_certain=False),
    _body_exhibit("gzip-chunked", _answer_encoded("gzip", _gzip, framing=Framing.CHUNKED), _DECODES),
    _body_exhibit("gzip-members", _answer_encoded("gzip", _two_gzip_members), "decodes all members", is_certain=False),
    _body_exhibit("deflate", _answer_encoded("deflate", zlib.compress), _MAY_DECODE, is_certain=False),
    _body_exhibit("raw-deflate", _answer_encoded("deflate", _raw_deflate), _MAY_DECODE, is_certain=False),
    _body_exhibit("brotli", _answer_encoded("br", _brotli), _MAY_DECODE, is_certain=False),
    _body_exhibit("zstd", _answer_encoded("zstd", zstd.compress), _MAY_DECODE, is_certain=False),
    _body_exhibit(
        "gzip-twice", _answer_encoded("gzip, gzip", lambda data: _gzip(_gzip(data))), "decodes both", is_certain=False
    ),
    _body_exhibit("identity", _answer_encoded("identity", bytes), "takes it as it is"),
    _body_exhibit(
        "large", _large_answer, "reads as much as it takes", statuses=frozenset({200, ABORTED}), is_certain=False
    ),
)

BROKEN: Final = (
    _broken_exhibit("cut", _answer_sent(fault=Fault.CUT, fault_at=_BREAK_AT), _KNOWS),
    _broken_exhibit("cut-chunk", _answer_sent(framing=Framing.CHUNKED, fault=Fault.CUT, fault_at=_BREAK_AT), _KNOWS),
    _broken_exhibit("too-little", _answer_with_wrong_length(500), _KNOWS),
    _broken_exhibit(
        "too-much", _answer_with_wrong_length(-200), "takes the announced bytes, and a new connection", is_whole=True
    ),
    _broken_exhibit("stalled", _answer_sent(fault=Fault.STALLED, fault_at=_BREAK_AT), _GIVES_UP),
    _broken_exhibit("mute", _answer_sent(fault=Fault.SILENT), _GIVES_UP),
    _broken_exhibit("reset", _answer_sent(fault=Fault.RESET), "asks again, a few times"),
    _broken_exhibit("dripping", _answer_sent(bytes_per_s=_DRIPPING_BYTES_PER_S), _GIVES_UP, is_whole=True),
    _broken_exhibit("endless", _answer_sent(framing=Framing.CHUNKED, fault=Fault.ENDLESS), "stops at its bound"),
    _broken_exhibit("endless-closing", _answer_sent(framing=Framing.CLOSE, fault=Fault.ENDLESS), "stops at its bound"),
    _broken_exhibit(
        "half-gzip", _answer_encoded("gzip", lambda data: _gzip(data)[:-40]), "does not trust it", is_whole=True
    ),
    _broken_exhibit("not-gzip", _answer_encoded("gzip", bytes), "does not break", is_whole=True),
    _broken_exhibit("gzip-bomb", _answer_with_bomb("gzip", _gzip), "stops at its bound", is_whole=True, leads=False),
    _broken_exhibit("brotli-bomb", _answer_with_bomb("br", _brotli), "stops at its bound", is_whole=True, leads=False),
    _broken_exhibit(
        "zstd-bomb", _answer_with_bomb("zstd", zstd.compress), "stops at its bound", is_whole=True, leads=False
    ),
)
