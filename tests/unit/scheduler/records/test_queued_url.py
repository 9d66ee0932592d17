from __future__ import annotations

import zlib
from typing import Any

import msgpack
import pytest
from isal import isal_zlib

from bigcrawl.scheduler.records.queued_url import BATCH_VERSION, BatchFormatError, QueuedUrl, decode_batch, encode_batch

ROW = [1, "a.example", 0, 0, b"body"]


def packed(rows: object) -> bytes:
    """Bytes of a batch that holds anything."""
    return bytes((BATCH_VERSION,)) + isal_zlib.compress(msgpack.packb(rows), 1)


def test_a_batch_reads_back_as_it_was() -> None:
    """Order, values and types are kept, at the ends of their ranges too."""
    urls = [
        QueuedUrl(0, "a.example", -(2**31), 0, b""),
        QueuedUrl(2**64 - 1, "xn--bcher-kva.example", 2**31 - 1, 1, bytes(range(256))),
    ]
    for batch in (urls, urls[:1], []):
        decoded = decode_batch(encode_batch(batch))
        assert decoded == batch
        assert all(type(url) is QueuedUrl for url in decoded)


@pytest.mark.parametrize("urls", [0, 1, 3, 4, 8, 16, 200])
def test_batch_of_any_size_takes_less_than_its_text(urls: int) -> None:
    """A small one is packed with a code of its own, by level 0, whose 120 bytes are all that it may have more.

    One of a few URLs is not packed at all, in a form that every zlib reads.
    """
    batch = [QueuedUrl(at << 40, "a.example", 0, 0, b"\x93http://a.example/archive/%d.html" % at) for at in range(urls)]
    size = len(encode_batch(batch))
    assert decode_batch(encode_batch(batch)) == batch
    assert zlib.decompress(encode_batch(batch)[1:]) == isal_zlib.decompress(packed(batch)[1:])
    assert size <= len(packed(batch)) + 120
    assert size < len(msgpack.packb(batch)) + 120


@pytest.mark.parametrize(
    "row",
    [
        ROW[:4],
        [*ROW, 0],
        [],
        [-1, *ROW[1:]],
        [True, *ROW[1:]],
        [1.0, *ROW[1:]],
        [1, b"a.example", 0, 0, b""],
        [1, "a.example", None, 0, b""],
        [1, "a.example", 0, "0", b""],
        [1, "a.example", 0, 0, "text"],
        "abcde",
        7,
        None,
    ],
)
def test_one_malformed_entry_refuses_the_batch(row: object) -> None:
    """Fields too few or too many, of another type, or out of range: alone, or anywhere among sound ones."""
    for rows in ([row], [ROW, row], [row, ROW], [ROW, row, ROW]):
        with pytest.raises(BatchFormatError):
            decode_batch(packed(rows))


@pytest.mark.parametrize("value", [7, None, "text", {"a": 1}])
def test_what_is_no_list_is_no_batch(value: object) -> None:
    """Any other msgpack value is refused."""
    with pytest.raises(BatchFormatError):
        decode_batch(packed(value))


@pytest.mark.parametrize(("sent", "read"), [(True, 1), (False, 0), (2.0, 2), (0.5, 0), (-1.5, -1)])
def test_priorities_that_earlier_versions_sent_are_read(sent: Any, read: int) -> None:
    """They took bools and floats from spiders as they were; a batch must not be lost for one of them."""
    urls = [QueuedUrl(1, "a.example", 0, 0, b"x"), QueuedUrl(2, "a.example", sent, 0, b"y")]
    found = decode_batch(encode_batch(urls))
    assert found == [urls[0], urls[1]._replace(priority=read)]
    assert {type(url.priority) for url in found} == {int}
