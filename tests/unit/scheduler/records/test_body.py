"""The fields that a body may have beside those of its request."""

from __future__ import annotations

import msgpack
import pytest

from bigcrawl.scheduler.records.body import as_next_try, for_revisit, look_at_body, look_at_link, visit_in

PLAIN = msgpack.packb(["http://a.example/", 3, None])
RETRY = msgpack.packb(["http://a.example/", 3, {"meta": {"retry_times": 2}, "priority": -2}])
OF_TYPES = msgpack.packb(["http://a.example/", 3, {"meta": {"set": msgpack.ExtType(5, b"x")}}])


@pytest.mark.parametrize("body", [PLAIN, RETRY, OF_TYPES])
def test_a_visit_is_added_and_replaced_and_the_rest_stays_byte_for_byte(body: bytes) -> None:
    """What only an adapter can decode is not decoded."""
    once = for_revisit(body, b"one")
    twice = for_revisit(once, b"two")
    assert (visit_in(body), visit_in(once), visit_in(twice)) == (b"", b"one", b"two")
    assert twice[1 : len(body)] == body[1:]
    assert look_at_body(twice) == look_at_body(body)


def test_a_try_remembers_the_visit_and_the_first_body() -> None:
    """However often a page fails, its next visit is like its first one."""
    tried = as_next_try(RETRY, as_next_try(RETRY, for_revisit(PLAIN, b"one")))
    assert visit_in(tried) == b"one"
    assert look_at_link(tried) == ("http://a.example/", 3, -2)
    assert for_revisit(tried, b"two") == for_revisit(PLAIN, b"two")
    first = as_next_try(RETRY, PLAIN)
    assert (visit_in(first), for_revisit(first, b"v")) == (b"", for_revisit(PLAIN, b"v"))
