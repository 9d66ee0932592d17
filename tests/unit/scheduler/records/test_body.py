"""The fields that a body may have beside those of its request."""

from __future__ import annotations

import msgpack
import pytest

from bigcrawl.scheduler.records.body import (
    as_next_try,
    known_in,
    look_at_body,
    look_at_link,
    look_at_origin,
    with_known,
)

PLAIN = msgpack.packb(["http://a.example/", 3, None])
RETRY = msgpack.packb(["http://a.example/", 3, {"meta": {"retry_times": 2}, "priority": -2}])
OF_TYPES = msgpack.packb(["http://a.example/", 3, {"meta": {"set": msgpack.ExtType(5, b"x")}}])


@pytest.mark.parametrize("body", [PLAIN, RETRY, OF_TYPES])
def test_a_visit_is_added_and_replaced_and_the_rest_stays_byte_for_byte(body: bytes) -> None:
    """What only an adapter can decode is not decoded."""
    once = with_known(body, b"one")
    twice = with_known(once, b"two")
    assert (known_in(body), known_in(once), known_in(twice)) == (b"", b"one", b"two")
    assert twice[1 : len(body)] == body[1:]
    assert look_at_body(twice) == look_at_body(body)


def test_a_try_remembers_the_visit_and_the_first_body() -> None:
    """However often a page fails, its next visit is like its first one."""
    tried = as_next_try(RETRY, as_next_try(RETRY, with_known(PLAIN, b"one")))
    assert known_in(tried) == b"one"
    assert look_at_link(tried) == ("http://a.example/", 3, -2)
    assert with_known(tried, b"two") == with_known(PLAIN, b"two")
    first = as_next_try(RETRY, PLAIN)
    assert (known_in(first), with_known(first, b"v")) == (b"", with_known(PLAIN, b"v"))


def test_a_link_may_name_its_page() -> None:
    """It is a plain link all the same; a body that names something else there is damaged."""
    found = msgpack.packb(["http://a.example/", 3, [7, "http://b.example/page"]])
    assert look_at_body(found) == look_at_body(PLAIN)
    assert look_at_link(found) == ("http://a.example/", 3, 7)
    assert look_at_origin(found) == (3, "http://b.example/page")
    assert known_in(with_known(found, b"one")) == b"one"
    timed = msgpack.packb(["http://a.example/", 3, [7, "http://b.example/page", 1_800_000_000, "192.0.2.7"]])
    assert (look_at_body(timed), look_at_link(timed)) == (look_at_body(found), look_at_link(found))
    assert look_at_origin(timed) == look_at_origin(found)
    for damaged in ([7], ["7", "x"], [7, 7], [7, "x", 1], [7, "x", "1", 1], []):
        with pytest.raises(ValueError, match="wrong type"):
            look_at_body(msgpack.packb(["http://a.example/", 3, damaged]))
