from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise

import pytest

from bigcrawl_simweb.basics.answer import Answer, Fault, Framing
from bigcrawl_simweb.serve.sending import AnswerDelivery, ConnectionEnding, plan_delivery, refusal_answer

BODY = bytes(range(250)) * 4


def delivered(
    answer: Answer, *, head_only: bool = False, is_old: bool = False, keep_alive: bool = True
) -> AnswerDelivery:
    return plan_delivery(answer, head_only=head_only, is_old=is_old, keep_alive=keep_alive, date="now")


def test_answer_is_one_piece_and_the_connection_goes_on():
    """What has nothing wrong with it is handed over at once: the server's headers around the web's, then the body."""
    delivery = delivered(Answer(200, (("X", "y"),), b"12345"))
    head = (
        b"HTTP/1.1 200 OK\r\nDate: now\r\nServer: simweb\r\nX: y\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n"
    )
    assert list(delivery.pieces) == [(0, head + b"12345")]
    assert delivery[1:] == (ConnectionEnding.NEXT, "-", False)


@pytest.mark.parametrize(
    ("change", "ending", "fault", "is_ended_by_client"),
    [
        ({}, ConnectionEnding.NEXT, "-", False),
        ({"framing": Framing.CHUNKED}, ConnectionEnding.NEXT, "-", False),
        ({"framing": Framing.CLOSE}, ConnectionEnding.CLOSE, "-", False),
        ({"framing": Framing.OLD}, ConnectionEnding.CLOSE, "-", False),
        ({"announced_bytes": 1000}, ConnectionEnding.NEXT, "-", False),
        ({"announced_bytes": 1001}, ConnectionEnding.CLOSE, "short", False),
        ({"announced_bytes": 999}, ConnectionEnding.NEXT, "long", False),
        ({"announced_bytes": 1001, "framing": Framing.CHUNKED}, ConnectionEnding.NEXT, "-", False),
        ({"fault": Fault.RESET}, ConnectionEnding.RESET, "reset", False),
        ({"fault": Fault.SILENT}, ConnectionEnding.HANG, "silent", True),
        ({"fault": Fault.STALLED}, ConnectionEnding.HANG, "stalled", True),
        ({"fault": Fault.CUT}, ConnectionEnding.CLOSE, "cut", False),
        ({"fault": Fault.ENDLESS}, ConnectionEnding.HANG, "endless", True),
        ({"fault": Fault.CUT, "announced_bytes": 1001}, ConnectionEnding.CLOSE, "cut", False),
    ],
)
def test_ending_is_that_of_framing_and_fault(
    change: dict[str, object], ending: ConnectionEnding, fault: str, is_ended_by_client: bool
):
    """Each framing, lie and fault has its ending; a client that wants the connection closed changes only good ends."""
    answer = replace(Answer(200, (), BODY), **change)  # type: ignore[arg-type]
    assert delivered(answer)[1:] == (ending, fault, is_ended_by_client)
    closing = ConnectionEnding.CLOSE if ending is ConnectionEnding.NEXT else ending
    assert delivered(answer, keep_alive=False)[1:] == (closing, fault, is_ended_by_client)


@pytest.mark.parametrize("framing", list(Framing))
@pytest.mark.parametrize("rate", [1, 3, 100, 999, 4000, 10**9])
def test_slow_body_is_due_when_its_rate_allows(framing: Framing, rate: int):
    """The head comes after the delay, each piece not before its last byte is due, and the last when all are."""
    delivery = delivered(Answer(200, (), BODY, framing=framing, bytes_per_s=rate, delay_ms=70))
    (first_ms, first), *rest = delivery.pieces
    assert first_ms == 70
    assert rate == 10**9 or first.endswith(b"\r\n\r\n")
    dues = [due_ms for due_ms, _ in rest]
    assert dues == sorted(dues)
    assert (dues or [70])[-1] == 70 + 1000 * len(BODY) // rate
    if rate < 10**9:
        # A few pieces a second, and no second without one.
        assert all(later - earlier <= 1000 for earlier, later in pairwise([70, *dues]))
        assert len(rest) <= len(BODY) + 1 if rate < 8 else len(rest) <= 9 * (len(BODY) // rate + 1)


def test_endless_body_repeats_without_a_gap():
    """Piece after piece goes on where the last ended, at the rate that is asked for."""
    answer = Answer(200, (), b"abcdefg", framing=Framing.CLOSE, fault=Fault.ENDLESS)
    pieces = [piece for _, piece in islice(delivered(answer).pieces, 5)]
    body = b"".join(pieces).partition(b"\r\n\r\n")[2]
    assert body == (b"abcdefg" * len(body))[: len(body)]
    assert len(body) > 200_000
    slow = delivered(replace(answer, bytes_per_s=20)).pieces
    assert [(due_ms, piece) for due_ms, piece in islice(slow, 1, 5)] == [
        (250, b"abcde"),
        (500, b"fgabc"),
        (750, b"defga"),
        (1000, b"bcdef"),
    ]


def test_nothing_is_made_before_it_is_sent():
    """A large body is not cut up in advance: pieces are made one at a time."""
    answer = Answer(200, (), bytes(50_000_000), framing=Framing.CHUNKED)
    _, piece = next(delivered(answer).pieces)
    assert len(piece) < 5000


def test_refusals_say_what_they_are():
    """The server's own answers carry their status in words."""
    answer = refusal_answer(405, ("Allow", "GET, HEAD"))
    assert (answer.status, answer.body) == (405, b"405 Method Not Allowed\n")
    assert ("Allow", "GET, HEAD") in answer.headers
