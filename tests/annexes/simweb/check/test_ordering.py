from __future__ import annotations

import random

from bigcrawl_simweb.basics.exchange import Exchange
from bigcrawl_simweb.check.checker import by_start


def test_exchanges_are_sorted_by_start_and_otherwise_left_as_they_are():
    """Nothing of an exchange is lost on the way, however many there are; equal starts keep their order."""
    dice = random.Random(2)
    log = [
        Exchange(
            start_ms := dice.randrange(2**41, 2**41 + 3000),
            start_ms + dice.randrange(1000),
            dice.choice(("127.16.0.1", "www.example.com")),
            f"/{dice.randrange(500)}",
            dice.choice((200, 404, 499, 503)),
            dice.choice(("", "192.0.2.1")),
            dice.choice(("", "-", "cut")),
            dice.choice((0, 1000)),
        )
        for _ in range(10_000)
    ]
    ordered = list(by_start(iter(log)))
    assert ordered == sorted(log, key=lambda exchange: exchange.start_ms)
    assert list(by_start([])) == []
