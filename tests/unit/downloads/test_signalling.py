"""Signals: those that nobody hears cost nothing, and nobody who listens is passed over."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from pydispatch import dispatcher
from scrapy import signals
from scrapy.exceptions import StopDownload
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from bigcrawl.downloads.signalling import SignalSender
from tests.unit.downloads.crawlers import new_crawler

SIGNAL = signals.bytes_received


def test_nobody_hears() -> None:
    """Neither a receiver of another signal nor one of another crawler counts."""
    crawler, other = new_crawler(), new_crawler()
    signalling = SignalSender(crawler)
    heard: list[Any] = []
    crawler.signals.connect(lambda **_: heard.append("other signal"), signals.headers_received, weak=False)
    other.signals.connect(lambda **_: heard.append("other crawler"), SIGNAL, weak=False)
    assert not signalling.is_heard(SIGNAL)
    assert signalling.send(SIGNAL, data=b"") == []
    assert not heard


@pytest.mark.parametrize("signal", [SIGNAL, dispatcher.Any], ids=["this-signal", "any-signal"])
@pytest.mark.parametrize("is_any_sender", [False, True], ids=["this-sender", "any-sender"])
def test_receiver_is_heard_from_the_moment_it_is_connected(signal: object, is_any_sender: bool) -> None:
    """However wide it listens; until it is disconnected."""
    crawler = new_crawler()
    signalling = SignalSender(crawler)
    heard: list[bytes] = []

    def hear(data: bytes) -> str:
        heard.append(data)
        return "answer"

    sender = dispatcher.Any if is_any_sender else crawler
    assert not signalling.is_heard(SIGNAL)
    dispatcher.connect(hear, signal=signal, sender=sender)
    try:
        assert signalling.is_heard(SIGNAL)
        assert signalling.send(SIGNAL, data=b"one") == crawler.signals.send_catch_log(SIGNAL, data=b"two")
    finally:
        dispatcher.disconnect(hear, signal=signal, sender=sender)
    assert heard == [b"one", b"two"]
    assert not signalling.is_heard(SIGNAL)


def test_receiver_that_is_gone_is_not_heard() -> None:
    """A weak receiver ends with its owner."""

    class Extension:
        def hear(self, **_: Any) -> None:
            """Do nothing."""

    crawler = new_crawler()
    extension = Extension()
    crawler.signals.connect(extension.hear, SIGNAL)
    signalling = SignalSender(crawler)
    assert signalling.is_heard(SIGNAL)
    del extension
    assert not signalling.is_heard(SIGNAL)


def test_failure_of_a_receiver_stands_in_its_place(caplog: pytest.LogCaptureFixture) -> None:
    """The others are called, and nothing is raised."""
    crawler = new_crawler()

    def broken(**_: Any) -> None:
        raise LookupError

    crawler.signals.connect(broken, SIGNAL)
    crawler.signals.connect(lambda **_: "fine", SIGNAL, weak=False)
    results = [result for _, result in SignalSender(crawler).send(SIGNAL, data=b"")]
    assert {type(result) for result in results} == {Failure, str}
    assert "LookupError" in caplog.text


class Listener:
    """Receivers of every kind that Scrapy's documents and pydispatch's code know."""

    def nothing(self) -> str:
        return "nothing"

    def some(self, data: bytes, missing: str = "default") -> tuple[Any, ...]:
        local = data  # a variable is no parameter
        return local, missing

    def all(self, **fields: Any) -> dict[str, Any]:
        return fields

    def dispatched(self, signal: object, sender: object, spider: object) -> tuple[Any, ...]:
        return signal, sender, spider

    def keyword_only(self, *, data: bytes) -> bytes:
        return data  # pydispatch passes none

    def too_many(self, data: bytes, unknown: str) -> None:
        """Never called."""

    def broken(self, data: bytes) -> None:
        raise LookupError(data)

    def stopping(self) -> None:
        raise StopDownload(fail=False)

    def deferring(self) -> Deferred[None]:
        return _DEFERRED

    @functools.wraps(some)
    def wrapped(self, *values: Any, **fields: Any) -> tuple[Any, ...]:
        return values, fields

    @classmethod
    def of_class(cls, data: bytes) -> tuple[Any, ...]:
        return cls, data

    @staticmethod
    def static(data: bytes) -> bytes:
        return data


_DEFERRED: Deferred[None] = Deferred()
METHODS = [name for name in vars(Listener) if not name.startswith("__")]


def _told(send: Any, caplog: pytest.LogCaptureFixture) -> tuple[list[Any], list[Any]]:
    """What the receivers of a signal answer, and what is logged of them."""
    caplog.clear()
    answers = send(SIGNAL, data=b"page", spider="spider")
    told = [
        (receiver, (type(answer.value), str(answer.value)) if isinstance(answer, Failure) else answer)
        for receiver, answer in answers
    ]
    logged = [(r.name, r.levelno, r.getMessage(), bool(r.exc_info), vars(r)["spider"]) for r in caplog.records]
    return told, logged


@pytest.mark.parametrize("others", [[], ["all"], ["broken", "some"]], ids=len)
@pytest.mark.parametrize("name", METHODS)
def test_receivers_are_called_as_scrapy_calls_them(
    name: str, others: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Alone or among others: with the same fields, the same answers in the same order, and the same words of it."""
    crawler, listener = new_crawler(), Listener()
    for each in [name, *others]:
        crawler.signals.connect(getattr(listener, each), SIGNAL)
    told = _told(SignalSender(crawler).send, caplog)
    assert told == _told(crawler.signals.send_catch_log, caplog)
    assert len(told[0]) == len({name, *others})
    assert bool(told[1]) == bool({name, *others} & {"keyword_only", "too_many", "broken", "deferring"})


@pytest.mark.parametrize("signal", [SIGNAL, dispatcher.Any], ids=["this-signal", "any-signal"])
@pytest.mark.parametrize("is_any_sender", [False, True], ids=["this-sender", "any-sender"])
def test_method_is_called_once_however_often_it_listens(signal: object, is_any_sender: bool) -> None:
    """It listens to this signal of this crawler already."""
    crawler, listener = new_crawler(), Listener()
    sender = dispatcher.Any if is_any_sender else crawler
    crawler.signals.connect(listener.some, SIGNAL)
    dispatcher.connect(listener.some, signal=signal, sender=sender)
    try:
        assert SignalSender(crawler).send(SIGNAL, data=b"page") == [(listener.some, (b"page", "default"))]
    finally:
        dispatcher.disconnect(listener.some, signal=signal, sender=sender)


def test_method_is_heard_until_it_is_disconnected() -> None:
    """The one that is left is called, then none."""
    crawler, one, other = new_crawler(), Listener(), Listener()
    send = SignalSender(crawler).send
    for listener in (one, other):
        crawler.signals.connect(listener.nothing, SIGNAL)
    assert send(SIGNAL) == [(one.nothing, "nothing"), (other.nothing, "nothing")]
    crawler.signals.disconnect(one.nothing, SIGNAL)
    assert send(SIGNAL) == [(other.nothing, "nothing")]
    del other, listener
    assert send(SIGNAL) == []
