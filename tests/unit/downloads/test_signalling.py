"""Signals: those that nobody hears cost nothing, and nobody who listens is passed over."""

from __future__ import annotations

from typing import Any

import pytest
from pydispatch import dispatcher
from scrapy import signals
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
