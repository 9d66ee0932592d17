"""The observers of a node: each is asked for what it observes, and nothing leaves before its page is safe."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgpack
import pytest

from bigcrawl.features.copies.page import PageContents
from bigcrawl.features.mirrors.page import ContentSamples
from bigcrawl.features.tallies.page import NodeTallies
from bigcrawl.features.totals.page import FetchedBytes
from bigcrawl.features.traps.page import TrapSigns
from bigcrawl.redisdb.scripts import EndedUrl
from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds
from bigcrawl.revisiting.rules import PERIODIC
from bigcrawl.revisiting.visit import Answer, next_visit
from bigcrawl.scheduler.handout.observers import Observer, Observers
from bigcrawl.scheduler.records.body import with_known
from bigcrawl.scheduler.records.held_urls import HeldUrls
from bigcrawl.scheduler.records.observed import ObservedRows
from tests.support.observing import NO_OBSERVERS, Sent, node_side
from tests.unit.scheduler.records.test_held_urls import held_url
from tests.unit.scheduler.world import world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.handout.observers import SeenPage
    from bigcrawl.scheduler.records.held import HeldUrl

SIDES = {
    "traps": TrapSigns,
    "copies": PageContents,
    "mirrors": ContentSamples,
    "totals": FetchedBytes,
    "tallies": NodeTallies,
}
OFF: dict[str, dict[str, object]] = {
    "traps": {"BIGCRAWL_TRAPS": False},
    "copies": {"BIGCRAWL_CONTENT_SEEN": "off"},
    "mirrors": {"BIGCRAWL_TRAP_MIRROR_SHARE": 0},
}


class Marking(Observer):
    """Marks each answer, and observes nothing else."""

    def __init__(self, mark: bytes) -> None:
        self.mark = mark
        self.plds: list[str] = []

    def record_answer(self, held: HeldUrl, body: bytes) -> bytes:
        return self.mark + body if body.startswith(b"marked") else b""


class Rowing(Observer):
    """Has rows of each page, of which one comes when a page is safe, and notes all calls."""

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.calls: list[Any] = []
        self.waiting: list[tuple[HeldUrl, ObservedRows]] = []

    def rows_of(self, page: SeenPage) -> tuple[ObservedRows, ...]:
        row = ObservedRows(self.kind, page.body, self.kind)
        self.calls.append(("rows_of", page.content))
        self.waiting.append((page.held, row))
        return (row,)

    def complete(self) -> None:
        self.calls.append("complete")
        for held, row in self.waiting:
            held.add_rows(row, (row._replace(rows=b"late"),))
        self.waiting.clear()

    def record_offered(self, rows: tuple[ObservedRows, ...]) -> None:
        self.calls.append(("offered", len(rows)))

    def record_look_up(self, pld: str) -> None:
        self.calls.append(("look-up", pld))

    def send_again(self) -> None:
        self.calls.append("again")

    async def close(self) -> None:
        self.calls.append("closed")


@pytest.mark.parametrize("off", [(), ("traps",), ("copies",), ("mirrors",), ("traps", "mirrors"), tuple(OFF)])
def test_a_node_has_the_observers_that_the_settings_ask_for(off: tuple[str, ...]) -> None:
    """In the order of the list of features; mirrors need traps and copies."""
    settings = {name: value for feature in off for name, value in OFF[feature].items()}
    observers = Observers.of_node(HeldUrls(), Sent(), node_side(Sent(), settings))
    gone = {*off, *(("mirrors",) if {"traps", "copies"} & {*off} else ())}
    assert {type(one) for one in observers.all} == {SIDES[name] for name in SIDES.keys() - gone}


def test_what_is_off_costs_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a feature that is not there nor one that observes something else; no page is even looked at."""
    held, url = SimpleNamespace(), held_url(1)  # has nothing that could be asked
    monkeypatch.setattr("bigcrawl.scheduler.handout.observers.SeenPage", None)
    for name in ("record_answer", "record_look_up", "rows_of", "complete", "record_offered"):
        monkeypatch.setattr(Observer, name, None)
    marking = Marking(b"1")
    for observers in (NO_OBSERVERS, Observers(held, Sent(), [marking])):  # type: ignore[arg-type]
        observers.record_answer(url, b"page")
        observers.record_look_up("a.example")
        observers.record_page(url, b"page", is_text=True)
        observers.send_safe()
        observers.send_again()
        asyncio.run(observers.close())
    assert (url.marks, url.rows) == (b"", ())


def test_marks_of_several_go_together() -> None:
    """In their order; those of the last answer count."""
    observers, url = Observers(HeldUrls(), Sent(), [Marking(b"1"), Rowing(0), Marking(b"2")]), held_url(1)
    observers.record_answer(url, b"marked")
    assert url.marks == b"1marked2marked"
    observers.record_answer(url, b"")
    assert url.marks == b""


def test_rows_of_several_go_together_when_their_page_is_safe() -> None:
    """Those that come last, too; the URL is acknowledged after all of them, and the content is computed once."""
    held, storage, sent, several = HeldUrls(), SimpleNamespace(pages=1, safe_pages=0), Sent(7), [Rowing(1), Rowing(2)]
    held.storage = storage
    observers, url, empty = Observers(held, sent, several), held_url(1), held_url(2)
    for one, body in (url, b"page"), (empty, b""):
        held.add(one)
        observers.record_page(one, body, is_text=True)
    assert [[row.kind for row in one.rows] for one in (url, empty)] == [[1, 2], []]
    held.end(url, EndedUrl(1, 0), offered=7)
    observers.send_safe()
    assert (sent.rows, [len(one.calls) for one in several]) == ([], [1, 1]), "nothing is safe"
    storage.safe_pages = 1
    observers.send_safe()
    rows = [(1, b"page"), (2, b"page"), (1, b"late"), (2, b"late")]
    assert [(row.partition, row.rows) for row in sent.rows] == rows
    assert held.acknowledgeable(10) == []
    assert held.acknowledgeable(11) == [url]
    observers.send_safe()
    [content] = {one.calls[0][1] for one in several}
    assert [one.calls for one in several] == [[("rows_of", content), "complete", ("offered", 4)]] * 2


def test_a_page_that_is_fetched_again_has_the_rows_of_its_last_body() -> None:
    """What comes late for the one before is dropped."""
    held, sent, rowing = HeldUrls(), Sent(), Rowing(1)
    observers, url = Observers(held, sent, [rowing]), held_url(1)
    held.add(url)
    for body in b"first", b"second":
        observers.record_page(url, body, is_text=True)
    held.end(url, EndedUrl(1, 0), offered=0)
    observers.send_safe()
    assert [row.rows for row in sent.rows] == [b"second", b"late"]


def test_all_are_told_of_look_ups_of_a_forgetful_redis_and_of_the_end() -> None:
    several = [Rowing(1), Rowing(2)]
    observers = Observers(HeldUrls(), Sent(), several)
    observers.record_look_up("a.example")
    observers.send_again()
    asyncio.run(observers.close())
    assert [one.calls for one in several] == [[("look-up", "a.example"), "again", "closed"]] * 2


class Counting(Observer):
    """Notes what it is told of, and how."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def record_headers(self, *call: Any) -> None:
        self.calls.append(call)

    def record_unpacked(self, *call: Any) -> None:
        self.calls.append(call)

    def record_end(self, *call: Any) -> None:
        self.calls.append(call)

    def record_robots(self, *call: Any) -> None:
        self.calls.append(call)

    def record_gap(self, *call: Any) -> None:
        self.calls.append(call)

    def before_end(self, *call: Any) -> None:
        self.calls.append(call)

    def was_fetched(self, held: HeldUrl) -> bool:
        return held.fields.key == 1

    def reported(self) -> dict[str, int]:
        return {"counted": len(self.calls)}

    def record_sent(self, urls: int, *, is_elsewhere: bool) -> None:
        self.calls.append((urls, is_elsewhere))

    async def send(self, *, is_last: bool) -> None:
        self.calls.append(is_last)


@pytest.mark.parametrize("counting", [0, 1, 2])
def test_each_that_counts_is_told(counting: int) -> None:
    """Others, beside it or alone, pay nothing; nobody measures gaps for nobody."""
    several = [Counting() for _ in range(counting)]
    observers, url = Observers(HeldUrls(), Sent(), [Marking(b"1"), *several]), held_url(1)
    observers.record_headers(200, {}, 5)
    observers.record_unpacked(5, 7)
    observers.record_end(url)
    observers.record_robots(None, 0)
    observers.record_sent(3, is_elsewhere=True)
    if observers.record_gap is not None:
        observers.record_gap("host", "a.example", 2, 1)
    if observers.before_end is not None:
        observers.before_end(url, "poison")
    asyncio.run(observers.send())
    calls: list[Any] = [
        (200, {}, 5),
        (5, 7),
        (url,),
        (None, 0),
        (3, True),
        ("host", "a.example", 2, 1),
        (url, "poison"),
    ]
    assert [one.calls for one in several] == [[*calls, False]] * counting
    assert (observers.record_gap is None) == (observers.before_end is None) == (not counting)
    assert [observers.was_fetched(each) for each in (url, held_url(2))] == [bool(counting), False]
    assert observers.reported() == ({"counted": 8} if counting else {})
    assert observers.observer_of(Counting) is (several[-1] if several else None)


def test_a_node_tells_its_observers_what_it_knows(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Whether a page was fetched in an earlier visit, and the crawl's own key of anything."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url, revisit="periodic") as w:
            node = await w.joined()
            [signs] = [one for one in node.observers.all if isinstance(one, TrapSigns)]
            policy, url = RevisitPolicy(PERIODIC, WaitBounds(100, 1, 1_000)), held_url(1)
            body: bytes = msgpack.packb(["http://a.example/", 0, None])
            visit = next_visit(None, Answer(200, b"digest"), 0, policy)
            assert visit is not None
            for known, is_known in (body, False), (with_known(body, visit.pack()), True):
                url.fields = url.fields._replace(body=known)
                assert signs._was_fetched(url) is is_known
            [samples] = [one for one in node.observers.all if isinstance(one, ContentSamples)]
            assert samples._side.key_of(b"anything") == node.parts.crawl.keys.of_bytes(b"anything")

    asyncio.run(scenario())
