"""What pages contain leaves a node when they are safe, and before they are acknowledged."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import TYPE_CHECKING

from bigcrawl.content.exact_copies import content_key
from bigcrawl.content.sketches import BANDS
from bigcrawl.content.text import TEXT_BYTES_MAX
from bigcrawl.features.copies.near_page import UNSKETCHED_BYTES_MAX, NearContents
from bigcrawl.features.copies.page import PageContents
from bigcrawl.features.copies.rows import SEEN, SKETCHED, pack_seen
from bigcrawl.redisdb.scripts import EndedUrl
from bigcrawl.scheduler.handout.observers import Observers
from bigcrawl.scheduler.records.held_urls import HeldUrls
from bigcrawl.scheduler.records.observed import ObservedRows
from tests.support.observed_rows import pack_each, unpack_each
from tests.support.observing import Sent
from tests.unit.content.pages import page, sketch_of
from tests.unit.scheduler.records.test_held_urls import held_url

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

    from bigcrawl.scheduler.records.held import HeldUrl

PARTITIONS = 5


def key_of(body: bytes) -> int:
    return content_key(hashlib.sha1(body, usedforsecurity=False).digest())


def seen_row(url: HeldUrl, body: bytes) -> ObservedRows:
    return ObservedRows(key_of(body) % PARTITIONS, pack_seen(key_of(body), url.fields.key), SEEN)


def observing(held: HeldUrls, sent: Sent, *, has_sketches: bool) -> Observers:
    return Observers(held, sent, [(NearContents if has_sketches else PageContents)(PARTITIONS)])


def test_a_stored_body_is_not_digested_again_while_the_engine_has_it() -> None:
    """Its digest is that of the very object; an unpacked body has its own, and nothing of it is kept afterwards."""
    observers = observing(HeldUrls(), Sent(), has_sketches=False)
    url, stored, unpacked = held_url(3), page(1), page(2)
    url.record_payload(stored, hashlib.sha1(unpacked, usedforsecurity=False).digest())
    observers.record_page(url, stored, is_text=True)
    assert url.rows == (seen_row(url, unpacked),), "what the storage said"
    observers.record_page(url, unpacked, is_text=True)
    assert url.rows == (seen_row(url, unpacked),)
    observers.record_page(url, bytes(bytearray(stored)), is_text=True)
    assert url.rows == (seen_row(url, stored),), "equal bytes are another object, and are digested"
    url.finish(0)
    assert url.sha1_of(stored) is None


def test_a_row_leaves_when_its_page_is_safe_and_goes_before_its_end() -> None:
    """Not before, and once; the page is acknowledged when Redis has the row."""
    held, storage, sent = HeldUrls(), SimpleNamespace(pages=1, safe_pages=0), Sent(offered=7)
    held.storage = storage
    observers = observing(held, sent, has_sketches=False)
    url = held_url(3)
    held.add(url)
    observers.record_page(url, page(1), is_text=True)
    observers.send_safe()
    held.end(url, EndedUrl(3, 0), offered=7)
    observers.send_safe()
    assert sent.rows == [], "its page may be lost yet"
    storage.safe_pages = 1
    assert held.acknowledgeable(7) == [], "it has become safe since rows were sent"
    observers.send_safe()
    observers.send_safe()
    assert sent.rows == [seen_row(url, page(1))]
    assert held.acknowledgeable(7) == []
    assert held.acknowledgeable(8) == [url]


def test_what_is_tried_again_or_empty_or_of_another_node_has_nothing_to_tell() -> None:
    """A try that was not the last, a page without a body, and one whose partition was lost meanwhile."""
    held, sent = HeldUrls(), Sent()
    observers = observing(held, sent, has_sketches=True)
    again, empty, lost = held_url(1), held_url(2), held_url(3, partition=1)
    for url, body in (again, page(1)), (empty, b""), (lost, page(1)):
        held.add(url)
        observers.record_page(url, body, is_text=True)
    held.end(again, EndedUrl(1, 0, b"1:"), offered=0)
    held.end(empty, EndedUrl(2, 0), offered=0)
    held.end(lost, EndedUrl(3, 0), offered=0)
    held.drop_partition(1)
    observers.send_safe()
    assert sent.rows == []
    assert held.acknowledgeable(0) == [again, empty], "and they wait for nothing"


def told(observers: Observers, held: HeldUrls, sent: Sent, seq: int, body: bytes, *, is_text: bool = True) -> int:
    """How many rows with a sketch a page has; all its rows are of its content, and of it."""
    url = held_url(seq)
    held.add(url)
    observers.record_page(url, body, is_text=is_text)
    held.end(url, EndedUrl(seq, 0), offered=sent.offered)
    sent.rows.clear()
    observers.send_safe()
    assert sent.rows[0] == seen_row(url, body)
    rows = unpack_each(pack_each(sent.rows[0].rows, b"".join(row.rows for row in sent.rows[1:]))).sketched
    assert set(rows["content"].tolist()) <= {key_of(body)}
    assert set(rows["page"].tolist()) <= {url.fields.key}
    if len(rows):
        assert (sketch := sketch_of(body)) is not None
        assert rows["band"].tolist() == sketch.bands.tolist()
        assert (rows["sketch"] == sketch.packed).all()
        assert [row.partition for row in sent.rows[1:]] == [band % PARTITIONS for band in rows["band"].tolist()]
    return len(rows)


def test_a_content_is_sketched_once() -> None:
    """Until Redis may have forgotten it; what is no text, or too short, is not."""
    held, sent = HeldUrls(), Sent()
    observers = observing(held, sent, has_sketches=True)
    assert told(observers, held, sent, 1, page(1)) == BANDS
    assert told(observers, held, sent, 2, page(1)) == 0
    assert told(observers, held, sent, 3, page(2)) == BANDS
    assert told(observers, held, sent, 4, page(3), is_text=False) == 0
    assert told(observers, held, sent, 5, b"<p>short") == 0
    assert told(observers, held, sent, 10, b"<p>short") == 0
    assert told(observers, held, sent, 8, page(3)) == BANDS, "it was no text before"
    assert told(observers, held, sent, 9, page(3)) == 0
    observers.send_again()
    assert told(observers, held, sent, 6, page(1)) == BANDS
    without = observing(held, sent, has_sketches=False)
    assert told(without, held, sent, 7, page(7)) == 0


def sketched_of(sent: Sent) -> npt.NDArray[Any]:
    """The rows of sketches that were offered."""
    packed = b"".join(row.rows for row in sent.rows if row.kind == SKETCHED)
    return unpack_each(pack_each(b"", packed)).sketched


def test_pages_are_sketched_together_and_few_bytes_wait_for_it() -> None:
    """Sketches come when enough of them wait, or the first page is safe; each page has those of its own content."""
    held, sent = HeldUrls(), Sent()
    observers = observing(held, sent, has_sketches=True)
    urls = [held_url(seq) for seq in range(1, 61)]
    bodies = [page(url.seq) for url in urls[:-1]] + [page(60, 40_000)]
    for nth, (url, body) in enumerate(zip(urls, bodies, strict=True), 1):
        held.add(url)
        observers.record_page(url, body, is_text=True)
        waiting = [body for other, body in zip(urls[:nth], bodies[:nth], strict=True) if len(other.rows) == 1]
        assert sum(min(len(body), TEXT_BYTES_MAX) for body in waiting) < UNSKETCHED_BYTES_MAX + TEXT_BYTES_MAX
    assert [len(url.rows) for url in urls[:5]] == [1 + BANDS] * 5, "they have theirs before any is safe"
    for url in urls:
        held.end(url, EndedUrl(url.seq, 0), offered=sent.offered)
    observers.send_safe()
    for url, body in zip(urls, bodies, strict=True):
        sketch = sketch_of(body)
        rows = sketched_of(sent)
        mine = rows[rows["page"] == url.fields.key]
        assert sketch is not None
        assert mine["band"].tolist() == sketch.bands.tolist()


def test_a_page_that_is_tried_again_has_the_sketch_of_its_last_content() -> None:
    """The one before waited for its sketch when the URL was fetched again."""
    held, sent = HeldUrls(), Sent()
    observers = observing(held, sent, has_sketches=True)
    url = held_url(1)
    held.add(url)
    for body in page(1), page(2), page(2):
        observers.record_page(url, body, is_text=True)
    held.end(url, EndedUrl(1, 0), offered=0)
    observers.send_safe()
    rows = sketched_of(sent)
    assert rows["content"].tolist() == [key_of(page(2))] * BANDS
