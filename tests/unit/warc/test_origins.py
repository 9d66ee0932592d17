"""Payloads that were written lately are known, and nothing is called a copy that is not one."""

from __future__ import annotations

from bigcrawl.warc.origins import COPY_BYTES_MIN, URL_CHARS_MAX, RecentOrigins
from bigcrawl.warc.records import Exchange, Origin, payload_sha1
from tests.support.sha1_collision import FIRST, SECOND
from tests.unit.warc.reading import exchange

BODY = b"<p>of some length</p>" * 30


def stored(number: int, body: bytes = BODY, **changes: object) -> Exchange:
    return exchange(number, body, record_id=b"<urn:uuid:%d>" % number, **changes)


class File:
    """A file that is being written, or is sealed."""

    def __init__(self, *, is_sealed: bool = False) -> None:
        self.is_sealed = is_sealed


FILE = File()


def written(origins: RecentOrigins, *exchanges: Exchange, file: File = FILE) -> None:
    for one in exchanges:
        origins.remember(one, origins.look_up(one, file)[0], file)


def origin_of(origins: RecentOrigins, one: Exchange, file: File = FILE) -> Origin | None:
    return origins.look_up(one, file)[1]


def test_a_copy_knows_the_record_that_was_written() -> None:
    """Its address, date and id; the same body of any other page."""
    origins = RecentOrigins(10)
    assert origin_of(origins, stored(1)) is None
    written(origins, stored(1))
    assert origin_of(origins, stored(2, status=404)) == Origin("http://a.example/1", stored(1).date_ms, b"<urn:uuid:1>")
    assert origin_of(origins, stored(2, BODY + b".")) is None


def test_another_body_with_the_same_sha1_is_no_copy() -> None:
    """Two such bodies were published; the bytes of the second are stored too."""
    origins = RecentOrigins(10)
    assert payload_sha1(stored(1, FIRST)) == payload_sha1(stored(2, SECOND))
    written(origins, stored(1, FIRST))
    assert origin_of(origins, stored(2, SECOND)) is None
    written(origins, stored(2, SECOND))
    for body, url in ((FIRST, "http://a.example/1"), (SECOND, "http://a.example/2")):
        found = origin_of(origins, stored(3, body))
        assert found is not None
        assert found.url == url


def test_a_record_of_another_file_is_an_original_once_that_file_is_sealed() -> None:
    """Until then a power cut may keep the copy and lose the original; so it is stored whole, and is an original."""
    origins, first, second = RecentOrigins(10), File(), File()
    written(origins, stored(1), file=first)
    assert origin_of(origins, stored(2), first) is not None
    assert origin_of(origins, stored(2), second) is None
    first.is_sealed = True
    assert origin_of(origins, stored(2), second) == origin_of(origins, stored(2), first) is not None
    first.is_sealed = False
    written(origins, stored(2), file=second)
    assert origin_of(origins, stored(3), first) is None
    found = origin_of(origins, stored(3), second)
    assert found is not None
    assert found.url == "http://a.example/2"


def test_least_recently_used_payloads_are_forgotten() -> None:
    """What is looked up is kept."""
    origins = RecentOrigins(2)
    first, second, third = (stored(number, BODY + b"%d" % number) for number in range(3))
    written(origins, first, second)
    origins.look_up(first, FILE)
    written(origins, third)
    assert [origin_of(origins, one) is not None for one in (first, second, third)] == [True, False, True]
    origins.forget()
    assert origin_of(origins, first) is None


def test_what_may_not_be_referred_to_is_not_remembered() -> None:
    """A short or incomplete body, a record without an id, and an address without end."""
    long = f"http://a.example/{'x' * URL_CHARS_MAX}"
    for one in (
        stored(1, b"x" * (COPY_BYTES_MIN - 1)),
        stored(1, truncated="length"),
        stored(1, url=long),
        exchange(1, BODY),
    ):
        origins = RecentOrigins(10)
        written(origins, one)
        assert len(origins._origins) == 0
    written(nothing := RecentOrigins(0), stored(1))
    assert origin_of(nothing, stored(2)) is None


def test_an_incomplete_body_is_nobodys_copy() -> None:
    """Its bytes are those of another, and its page is not."""
    origins = RecentOrigins(10)
    written(origins, stored(1))
    assert origin_of(origins, stored(2, truncated="disconnect")) is None
