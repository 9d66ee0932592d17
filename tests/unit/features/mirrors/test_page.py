"""Which contents of a PLD a node tells of, and how often."""

from __future__ import annotations

import hashlib
from itertools import count

import pytest

from bigcrawl.content.exact_copies import content_key
from bigcrawl.features.copies.page import observer_of as near_observer_of
from bigcrawl.features.mirrors.page import observer_of
from bigcrawl.features.mirrors.rows import SAMPLED, pack_sampled
from bigcrawl.features.mirrors.verdicts import is_sample, sample_secret
from bigcrawl.redisdb.scripts import EndedUrl
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


def test_near_copies_are_one_sample_where_they_are_known() -> None:
    """The gist of a page stands for its content, also of one that the node has sketched before."""
    sent, held = Sent(), HeldUrls()
    side = node_side(sent, {"BIGCRAWL_PARTITIONS": PARTITIONS, "BIGCRAWL_CONTENT_SEEN": "near"})
    of_copies, of_mirrors = near_observer_of(side), observer_of(side)
    assert of_copies is not None
    assert of_mirrors is not None
    observers = Observers(held, sent, [of_copies, of_mirrors])
    bodies = [page(seed, 300) for seed in range(120)]
    seqs = count(1)

    def samples_on(host: str, bodies: list[bytes]) -> set[int]:
        sent.hints.clear()
        for body in bodies:
            url = held_url(next(seqs), host=host)
            held.add(url)
            observers.record_page(url, body, is_text=True)
            held.end(url, EndedUrl(url.seq, 0), offered=0)
        observers.send_safe()
        return {int.from_bytes(row.rows[8:], "little") for row in sent.hints}

    first = samples_on("a.example", bodies)
    assert 15 < len(first) < 45
    assert samples_on("b.example", bodies) == first, "their sketches are not made again"
    dated = samples_on("c.example", [body + b"<p>as of day %d</p>" % n for n, body in enumerate(bodies)])
    assert len(first & dated) > 0.75 * len(first)
    assert samples_on("d.example", [b"<p>short %d" % n for n in range(40)]), "the content of one without a sketch"


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
