"""What a visit changes in what is known of a page."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds
from bigcrawl.revisiting.rules import CHANGE_RATE
from bigcrawl.revisiting.visit import (
    NO_ANSWER,
    VALIDATOR_BYTES_MAX,
    Answer,
    Visit,
    VisitFormatError,
    digest_of,
    next_visit,
)

POLICY = RevisitPolicy(CHANGE_RATE, WaitBounds(100, 10, 1_000))
PAGE = Answer(200, digest_of(b"page"), b'"a"', b"Wed, 25 Nov 2026 00:00:00 GMT")
OTHER = Answer(200, digest_of(b"other"), b'"b"')
SAME = Answer(304, is_conditional=True)


def visited(*answers: Answer, every_s: int = 100, begin_s: int = 1_000) -> Visit:
    """What is known after these visits."""
    visit: Visit | None = None
    for place, answer in enumerate(answers):
        visit = next_visit(visit, answer, begin_s + place * every_s, POLICY)
        assert visit is not None
    assert visit is not None
    return visit


def test_only_a_page_is_visited_again() -> None:
    """What was an error, a redirect or nothing at its first visit is not visited again."""
    for answer in (NO_ANSWER, Answer(404), Answer(301), Answer(503), SAME):
        assert next_visit(None, answer, 0, POLICY) is None


def test_an_unchanged_page_is_known_by_its_status_or_its_digest() -> None:
    """Both leave the time of the last change as it was, and the validators."""
    for answer in (SAME, PAGE):
        visit = visited(PAGE, answer)
        assert (visit.first_s, visit.last_s, visit.changed_s, visit.number) == (1_000, 1_100, 1_000, 2)
        assert (visit.etag, visit.modified, visit.digest) == (PAGE.etag, PAGE.modified, PAGE.digest)
    assert visited(PAGE, OTHER).changed_s == 1_100


def test_the_validators_are_those_of_the_last_body() -> None:
    """A body without Last-Modified does not keep the old one, with which its ETag would not agree."""
    assert (visited(PAGE, OTHER).etag, visited(PAGE, OTHER).modified) == (b'"b"', b"")


def test_status_media_type_and_charset_are_kept() -> None:
    """The status is that of the last visit, the others are those of the last body."""
    page = PAGE._replace(media_type="text/html", charset="euc-jp")
    kept = [(visit.status, visit.media_type, visit.charset) for visit in (visited(page), visited(page, Answer(503)))]
    assert kept == [(200, "text/html", "euc-jp"), (503, "text/html", "euc-jp")]
    same, other = visited(page, SAME), visited(page, OTHER._replace(media_type="x" * 81))
    assert (same.status, same.media_type, same.charset) == (304, "text/html", "euc-jp")
    assert (other.status, other.media_type, other.charset) == (200, "", "")


def test_a_304_that_was_not_asked_for_says_nothing() -> None:
    """A server that answers 304 to a plain request has sent no page."""
    visit = visited(PAGE, Answer(304))
    assert (visit.last_s, visit.number, visit.history) == (1_000, 2, ())


@pytest.mark.parametrize("status", [301, 308, 404, 410])
def test_a_page_may_go_and_come_back(status: int) -> None:
    """Both are changes; while it is gone, nothing changes."""
    gone = visited(PAGE, Answer(status))
    assert (gone.is_gone, gone.changed_s, gone.digest) == (True, 1_100, PAGE.digest)
    assert visited(PAGE, Answer(status), Answer(status)).changed_s == 1_100
    back = visited(PAGE, Answer(status), PAGE)
    assert (back.is_gone, back.changed_s) == (False, 1_200)


@pytest.mark.parametrize("answer", [NO_ANSWER, Answer(500), Answer(302), Answer(403), Answer(429)])
def test_a_failure_leaves_a_page_as_it_was_and_waits_longer_each_time(answer: Answer) -> None:
    """Nothing was learned, and the waits double up to the longest."""
    failed = visited(PAGE, answer)
    assert failed == visited(PAGE)._replace(number=2, due_s=1_200, soonest_s=0, status=answer.status)
    assert visited(PAGE, *[answer] * 9).due_s == 1_900 + 1_000
    later = next_visit(failed, PAGE, 1_500, POLICY)
    assert later is not None
    assert later.history[0].seconds == 500


def test_a_clock_that_was_set_back_does_not_end_the_visits() -> None:
    """Times of a page only grow."""
    visit = next_visit(visited(PAGE, PAGE), OTHER, 5, POLICY)
    assert visit is not None
    assert (visit.last_s, visit.changed_s) == (1_101, 1_101)
    assert visit.due_s > visit.last_s


@pytest.mark.parametrize("value", [b"x" * (VALIDATOR_BYTES_MAX + 1), b"a\r\nX-Evil: 1", "\u00e9".encode(), b"\x00"])
def test_a_hostile_validator_is_not_sent_back(value: bytes) -> None:
    """What is long, or could end a header, is not kept; the digest does without."""
    visit = visited(Answer(200, b"digest", value, value))
    assert (visit.etag, visit.modified) == (b"", b"")


@given(st.lists(st.sampled_from([PAGE, OTHER, SAME, NO_ANSWER, Answer(404)]), max_size=40))
def test_a_visit_survives_its_bytes(answers: list[Answer]) -> None:
    """Packed and unpacked it is the same, and small."""
    visit = visited(PAGE, *answers)
    assert Visit.unpack(visit.pack()) == visit
    assert len(visit.pack()) < 250
    assert visit.number == len(answers) + 1


def test_visits_of_earlier_versions_are_read() -> None:
    """It is not brought forward by what its site says, until its next visit has planned that."""
    visit = visited(PAGE, OTHER)
    before = visit._replace(status=0)
    assert Visit.unpack(msgpack.packb((1, *visit[:10]))) == before._replace(soonest_s=0)
    assert Visit.unpack(msgpack.packb((2, *visit[:11]))) == before


def test_a_site_s_word_decides_about_the_first_wait() -> None:
    """And less and less about the later ones; how soon a page may be brought forward is told with it."""
    visit = next_visit(None, PAGE, 1_000, POLICY, hinted_s=50)
    assert visit is not None
    assert (visit.due_s, visit.soonest_s) == (1_000 + 46, 1_000 + 10)
    assert next_visit(None, PAGE, 1_000, POLICY) == visit._replace(due_s=1_100, soonest_s=1_012)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        msgpack.packb(7),
        msgpack.packb((4, *visited(PAGE))),
        msgpack.packb((3, *visited(PAGE)._replace(etag="text"))),  # type: ignore[arg-type]
        msgpack.packb((2, *visited(PAGE)[:9], [(1, -1, 0, 0)], 0)),
        msgpack.packb((2, *visited(PAGE)[:9], [(1, 1)], 0)),
        msgpack.packb((1, *visited(PAGE))),
    ],
)
def test_damaged_bytes_are_refused(data: bytes) -> None:
    """No field is guessed at."""
    with pytest.raises(VisitFormatError):
        Visit.unpack(data)
