"""Which contents of a PLD a node tells of, and how often."""

from __future__ import annotations

import hashlib
from itertools import count

import pytest

from bigcrawl.content.exact_copies import content_key
from bigcrawl.features.mirrors.page import observer_of
from bigcrawl.features.mirrors.rows import SAMPLED, pack_sampled
from bigcrawl.features.mirrors.verdicts import is_sample, sample_secret
from bigcrawl.scheduler.handout.observers import Observers
from bigcrawl.scheduler.records.held_urls import HeldUrls
from bigcrawl.scheduler.records.observed import ObservedRows
from tests.support.keys import KEYS, pld_key
from tests.support.observing import Sent, node_side
from tests.unit.content.pages import page
from tests.unit.scheduler.records.test_held_urls import held_url

PARTITIONS = 5


def key_of(body: bytes) -> int:
    return content_key(hashlib.sha1(body, usedforsecurity=False).digest())


def test_a_sample_of_a_pld_is_told_once() -> None:
    """To the partition of the PLD; what is on many of its pages is one sample, and on another PLD another one."""
    sent = Sent()
    observer = observer_of(node_side(sent, {"BIGCRAWL_PARTITIONS": PARTITIONS}))
    assert observer is not None
    observers = Observers(HeldUrls(), sent, [observer])
    bodies, secret = [page(seed) for seed in range(40)], sample_secret(KEYS.of_bytes)
    samples = [body for body in bodies if is_sample(key_of(body), secret)]
    assert 0 < len(samples) < len(bodies) / 2
    seqs = count(1)

    def told_of(host: str, body: bytes) -> list[ObservedRows]:
        url = held_url(next(seqs), host=host)
        sent.hints.clear()
        observers.record_page(url, body, is_text=True)
        assert url.rows == (), "nothing waits for it"
        return sent.hints[:]

    def row_of(pld: str, body: bytes) -> ObservedRows:
        return ObservedRows(pld_key(pld) % PARTITIONS, pack_sampled(pld_key(pld), key_of(body)), SAMPLED)

    for body in bodies:
        assert told_of("www.a.example", body) == ([row_of("a.example", body)] if body in samples else [])
    assert told_of("a.example", samples[0]) == []
    assert told_of("b.example", samples[0]) == [row_of("b.example", samples[0])]
    observers.send_again()
    assert told_of("a.example", samples[0]) == [row_of("a.example", samples[0])]


@pytest.mark.parametrize(
    "settings",
    [
        {"BIGCRAWL_TRAP_MIRROR_SHARE": 0},
        {"BIGCRAWL_TRAPS": False},
        {"BIGCRAWL_CONTENT_SEEN": "off"},
        {"BIGCRAWL_BUDGET_POLICY": "none"},
    ],
)
def test_nothing_is_observed_where_nobody_needs_it(settings: dict[str, object]) -> None:
    """Mirrors are off, or there are no budgets to lower."""
    assert observer_of(node_side(Sent(), settings)) is None
