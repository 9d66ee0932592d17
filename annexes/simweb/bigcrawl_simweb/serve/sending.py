"""Plans the pieces of an answer, their times, and the end of the connection. No I/O, no clock."""

from __future__ import annotations

from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl_simweb.basics.answer import Answer, Fault, Framing
from bigcrawl_simweb.serve.http1 import encode_head, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

# Small enough that most pages have several chunks.
_CHUNK_BYTES: Final = 4096
# The size of an endless body's repeated part, so that it is not sent a few bytes per piece.
_ENDLESS_BYTES: Final = 65_536
# The "few pieces per second" of a slow body.
_PIECES_PER_S: Final = 4
# Statuses whose answers have no body.
_BODILESS: Final = frozenset({*range(100, 200), 204, 304})
NO_FAULT: Final = "-"
_OPENED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
# With these, the client ends the exchange by leaving; that is not its failure.
_ENDED_BY_CLIENT: Final = frozenset({Fault.SILENT, Fault.STALLED, Fault.ENDLESS})


class ConnectionEnding(Enum):
    NEXT = "the connection is ready for the next request"
    CLOSE = "the connection is closed, and the client gets all that was sent"
    RESET = "the connection is reset"
    HANG = "nothing, until the client leaves"
    TUNNEL = "the client goes on by TLS, and means the host that it named"


class AnswerDelivery(NamedTuple):
    """The plan for an answer.

    Attributes:
        pieces: each with its delay in ms after the request's turn, not decreasing; may be endless.
        is_ended_by_client: whether the exchange can only end by the client leaving.
    """

    pieces: Iterator[tuple[int, bytes]]
    ending: ConnectionEnding
    fault: str
    is_ended_by_client: bool


def refusal_answer(status: int, *headers: tuple[str, str]) -> Answer:
    return Answer(status, (("Content-Type", "text/plain"), *headers), f"{status} {reason_of(status)}\n".encode())


def open_tunnel() -> AnswerDelivery:
    return AnswerDelivery(iter([(0, _OPENED)]), ConnectionEnding.TUNNEL, NO_FAULT, False)


def plan_delivery(answer: Answer, *, head_only: bool, is_old: bool, keep_alive: bool, date: str) -> AnswerDelivery:
    """Plan an answer. `is_old` means HTTP/1.0; `keep_alive` is the client's wish; `date` is the header's value."""
    fault, framing = answer.fault, answer.framing
    if fault in (Fault.RESET, Fault.SILENT):
        ending = ConnectionEnding.RESET if fault is Fault.RESET else ConnectionEnding.HANG
        return AnswerDelivery(iter([(answer.delay_ms, b"")]), ending, fault.value, fault in _ENDED_BY_CLIENT)
    if is_old and framing is Framing.CHUNKED:
        framing = Framing.CLOSE
    keep_alive = keep_alive and framing in (Framing.LENGTH, Framing.CHUNKED)
    head = _encode_answer_head(answer, framing, keep_alive, date)
    in_order = ConnectionEnding.NEXT if keep_alive else ConnectionEnding.CLOSE
    if head_only or answer.status in _BODILESS:
        return AnswerDelivery(iter([(answer.delay_ms, head)]), in_order, NO_FAULT, False)
    if fault is Fault.NONE and framing is Framing.LENGTH and not answer.bytes_per_s:
        pieces = iter([(answer.delay_ms, head + answer.body)])
    else:
        pieces = _delivery_pieces(head, answer, framing)
    if fault is Fault.NONE:
        lie = NO_FAULT if answer.announced_bytes is None else _length_fault(answer)
        return AnswerDelivery(pieces, ConnectionEnding.CLOSE if lie == "short" else in_order, lie, False)
    ending = ConnectionEnding.CLOSE if fault is Fault.CUT else ConnectionEnding.HANG
    return AnswerDelivery(pieces, ending, fault.value, fault in _ENDED_BY_CLIENT)


def _length_fault(answer: Answer) -> str:
    if (
        answer.announced_bytes is None
        or answer.framing is not Framing.LENGTH
        or answer.announced_bytes == len(answer.body)
    ):
        return NO_FAULT
    return "short" if len(answer.body) < answer.announced_bytes else "long"


def _encode_answer_head(answer: Answer, framing: Framing, keep_alive: bool, date: str) -> bytes:
    lines = [*answer.headers] if answer.has_own_head else [("Date", date), ("Server", "simweb"), *answer.headers]
    if answer.status not in _BODILESS:
        if framing is Framing.LENGTH:
            announced_bytes = len(answer.body) if answer.announced_bytes is None else answer.announced_bytes
            lines.append(("Content-Length", str(announced_bytes)))
        elif framing is Framing.CHUNKED:
            lines.append(("Transfer-Encoding", "chunked"))
    lines.append(("Connection", "keep-alive" if keep_alive else "close"))
    return encode_head("HTTP/1.0" if framing is Framing.OLD else "HTTP/1.1", answer.status, lines)


def _delivery_pieces(head: bytes, answer: Answer, framing: Framing) -> Iterator[tuple[int, bytes]]:
    """Yield the pieces. The head is sent with the body's first piece, unless that one is slow."""
    is_chunked = framing is Framing.CHUNKED
    waiting, due_ms = head, 0
    for due_ms, part in _body_parts(answer, is_chunked):
        piece = b"%x\r\n%b\r\n" % (len(part), part) if is_chunked else part
        if waiting and due_ms:
            yield answer.delay_ms, waiting
            waiting = b""
        yield answer.delay_ms + due_ms, waiting + piece
        waiting = b""
    if is_chunked and answer.fault is Fault.NONE:
        waiting += b"0\r\n\r\n"
    if waiting:
        yield answer.delay_ms + due_ms, waiting


def _body_parts(answer: Answer, is_chunked: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the sent part of the body in pieces, each due when the rate allows its last byte."""
    body, rate = answer.body, answer.bytes_per_s
    if answer.fault in (Fault.CUT, Fault.STALLED):
        body = body[: answer.fault_at]
    if not body:
        return
    is_endless = answer.fault is Fault.ENDLESS
    if is_endless:
        body *= 1 + min(rate or _ENDLESS_BYTES, _ENDLESS_BYTES) // len(body)
    step = max(1, rate // _PIECES_PER_S) if rate else len(body)
    if is_chunked:
        step = min(step, _CHUNK_BYTES)
    for number in count() if is_endless else range(1):
        for start in range(0, len(body), step):
            part = body[start : start + step]
            sent_bytes = number * len(body) + start + len(part)
            yield (sent_bytes * 1000 // rate if rate else 0), part
