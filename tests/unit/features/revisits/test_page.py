"""Which URLs of a node are visited again when they end."""

from __future__ import annotations

import msgpack
import pytest

from bigcrawl.features.revisits.page import LAST_ENDS, NextVisits
from bigcrawl.features.revisits.settings import is_on
from bigcrawl.revisiting.policies import RevisitPolicy, WaitBounds
from bigcrawl.revisiting.rules import PERIODIC
from bigcrawl.revisiting.visit import Answer, Visit
from bigcrawl.scheduler.handout.observers import Observers
from bigcrawl.scheduler.records.body import known_in
from bigcrawl.scheduler.records.held import HeldUrl
from bigcrawl.scheduler.records.held_urls import HeldUrls
from bigcrawl.scheduler.records.member import PRIORITY_MAX, Member
from bigcrawl.scheduler.records.queued_url import ASKED, NO_MORE_S, UNCHECKED
from tests.support.observing import Sent, node_side

PAGE = Answer(200, b"digest", b'"a"')
BODY = msgpack.packb(["http://a.example/", 0, 7])


def held_with(body: bytes, priority: int = 7) -> HeldUrl:
    fields = Member(1, 99, priority, UNCHECKED | ASKED | 64, 0, body)
    return HeldUrl(0, "a.example", 0, b"1:", fields, "http://a.example/", "a.example")


def revisits_of(visits_max: int = 0, now_s: int = 1_000) -> NextVisits:
    return NextVisits(RevisitPolicy(PERIODIC, WaitBounds(100, 1, 1_000)), visits_max, lambda: now_s * 1_000 + 999)


def body_after(*answers: Answer) -> bytes:
    body = BODY
    for answer in answers:
        held = held_with(body)
        revisits_of().record_visit(held, answer)
        assert held.again is not None
        body = held.again.url.body
    return body


def test_a_page_comes_back_with_what_is_known_of_it() -> None:
    """With its key, its first priority, and a body that has the visit; it is asked by HEAD again if its kind is."""
    held = held_with(BODY, priority=-3)
    revisits_of().record_visit(held, PAGE)
    assert held.again is not None
    due_s, number, url = held.again
    assert (due_s, number, url.key, url.host, url.priority, url.flags) == (1_100, 1, 99, "a.example", 7, 64)
    assert Visit.unpack(known_in(url.body)).etag == b'"a"'


@pytest.mark.parametrize(("wait_s", "due_s"), [(5_000, 6_000), (0, NO_MORE_S), (None, 1_100)])
def test_wait_of_a_rule_goes_before_the_policy(wait_s: int | None, due_s: int) -> None:
    """Also beyond its bounds; with 0 the page is not visited again."""
    held, policy = held_with(BODY), RevisitPolicy(PERIODIC, WaitBounds(100, 1, 1_000))
    NextVisits(policy, 0, lambda: 1_000_000, lambda _held: wait_s).record_visit(held, PAGE)
    assert held.again is not None
    assert held.again.due_s == due_s


def test_a_known_page_comes_back_whatever_happens_to_it() -> None:
    """A closed host or a new rule of robots.txt does not end its visits; poison does."""
    for reason in ("", "forbidden", "unreachable", "refused-address"):
        held = held_with(body_after(PAGE))
        revisits_of().before_end(held, reason)
        assert held.again is not None
        assert held.again.number == 2
    for reason in LAST_ENDS:
        held = held_with(body_after(PAGE))
        revisits_of().before_end(held, reason)
        assert held.again is None


def test_a_priority_is_bounded_as_at_the_first_visit() -> None:
    """The spider may have given more than an order in a back queue holds."""
    held = held_with(msgpack.packb(["http://a.example/", 0, 1 << 40]))
    revisits_of().record_visit(held, PAGE)
    assert held.again is not None
    assert held.again.url.priority == PRIORITY_MAX


@pytest.mark.parametrize(("refusal", "comes_back"), [("elsewhere", False), ("forbidden", True)])
def test_a_refusal_that_went_through_the_engine_counts_too(refusal: str, *, comes_back: bool) -> None:
    """So does a URL end that has an errback."""
    held = held_with(body_after(PAGE))
    held.refuse(refusal)
    revisits_of().before_end(held, "")
    assert (held.again is not None) is comes_back


def test_what_was_never_a_page_does_not_come_back() -> None:
    """Nor does anything in a crawl without visits, which pays nothing for them."""
    held = held_with(BODY)
    revisits_of().before_end(held, "")
    assert held.again is None
    assert not is_on(node_side(Sent()).config)
    assert Observers(HeldUrls(), Sent(), ()).before_end is None


def test_an_answer_is_not_forgotten_at_the_end() -> None:
    """What the visit brought counts, not that it has ended."""
    held = held_with(body_after(PAGE))
    revisits = revisits_of(now_s=1_200)
    assert revisits.record_visit(held, Answer(304, is_conditional=True)).is_unchanged
    revisits.before_end(held, "")
    assert held.again is not None
    assert Visit.unpack(known_in(held.again.url.body)).last_s == 1_200


@pytest.mark.parametrize("visits_max", [1, 2])
def test_visits_end_at_their_limit(visits_max: int) -> None:
    """The last visit plans no further one; what is known of the page is kept."""
    body = body_after(*[PAGE] * (visits_max - 1))
    held = held_with(body)
    revisits_of(visits_max).record_visit(held, PAGE)
    revisits_of(visits_max).before_end(held, "")
    assert not held.comes_again
    assert held.again is not None
    assert held.again.due_s == NO_MORE_S
    assert Visit.unpack(known_in(held.again.url.body)).number == visits_max


def test_a_visit_of_another_version_is_a_first_one() -> None:
    """A page is not lost because what was known of it cannot be read."""
    held = held_with(msgpack.packb(["http://a.example/", 0, None, msgpack.packb([9, 9])]))
    revisits_of().record_visit(held, PAGE)
    assert held.again is not None
    assert held.again.number == 1


def test_only_a_page_that_was_seen_as_it_is_counts_as_unchanged() -> None:
    """A failure, a page that is still gone and a first visit are not kept from the spider."""
    for before, answer in (([PAGE], Answer(500)), ([PAGE, Answer(404)], Answer(404)), ([], PAGE)):
        assert not revisits_of(now_s=2_000).record_visit(held_with(body_after(*before)), answer).is_unchanged
    assert revisits_of(now_s=2_000).record_visit(held_with(body_after(PAGE)), PAGE).is_unchanged


def seldom_in_japanese(visit: Visit, wait_s: int) -> int:
    """A user's: pages in EUC-JP come ten times as seldom, others that failed never."""
    return 10 * wait_s if visit.charset == "euc-jp" else 0 if visit.status >= 500 else wait_s


@pytest.mark.parametrize(("charset", "due_s"), [("euc-jp", 2_000), ("utf-8", 1_100)])
def test_function_of_a_user_decides_by_what_is_known_of_a_page(charset: str, due_s: int) -> None:
    held, policy = held_with(BODY), RevisitPolicy(PERIODIC, WaitBounds(100, 1, 1_000))
    visits = NextVisits(policy, 0, lambda: 1_000_000, own_wait=seldom_in_japanese)
    visits.record_visit(held, PAGE._replace(charset=charset))
    assert held.again is not None
    assert held.again.due_s == due_s
    again = held_with(held.again.url.body)
    visits.record_visit(again, Answer(503))
    assert again.again is not None
    assert (again.again.due_s == NO_MORE_S) is (charset == "utf-8")


@pytest.mark.parametrize("wait_s", [-1, 0.5, None, 1 << 40])
def test_function_of_a_user_that_fails_leaves_the_wait_of_the_policy(
    wait_s: object, caplog: pytest.LogCaptureFixture
) -> None:
    held, policy = held_with(BODY), RevisitPolicy(PERIODIC, WaitBounds(100, 1, 1_000))
    visits = NextVisits(policy, 0, lambda: 1_000_000, own_wait=lambda _visit, _wait_s: wait_s)
    for _ in range(2):
        visits.record_visit(held, PAGE)
    assert held.again is not None
    assert held.again.due_s == 1_100
    assert caplog.text.count("BIGCRAWL_REVISIT_WAIT failed") == 1
