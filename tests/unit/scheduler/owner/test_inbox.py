"""What an owner knows of its partition's inbox, from its own steps and from looks at Redis."""

from __future__ import annotations

from bigcrawl.redisdb.scripts import PartitionView
from bigcrawl.scheduler.owner.inbox import InboxReader


def view(inbox_id: str, *, appended: int, folded_urls: int = 0, folded: str = "0-0") -> PartitionView:
    state = {b"appended_urls": appended, b"folded_urls": folded_urls, b"folded": folded}
    fields = {name: str(value).encode() for name, value in state.items()}
    return PartitionView(0, True, "n", 1, 0, 0, 0, 0, -1, 0, inbox_id, fields)


def read(*ids: str) -> list[tuple[bytes, list[bytes]]]:
    return [(entry_id.encode(), [b"o", b"outcome"]) for entry_id in ids]


def at_rest() -> InboxReader:
    """One whose step has read all there was."""
    inbox = InboxReader("inbox")
    inbox.command("0-0", 10)
    inbox.parse([])
    inbox.record_step("0-0", 0)
    return inbox


def test_what_waits_is_unknown_at_first() -> None:
    """URLs may; after a step that has read less than it asked for, nothing does."""
    assert InboxReader("inbox").has_urls
    inbox = at_rest()
    assert (inbox.has_urls, inbox.has_others, inbox.has_more) == (False, False, False)


def test_entries_are_asked_for_behind_the_last_one_folded() -> None:
    """And parsed whatever their fields."""
    inbox = InboxReader("inbox")
    assert inbox.command("5-1", 7) == ("XRANGE", "inbox", "(5-1", "+", "COUNT", 7)
    [first, second] = inbox.parse([*read("6-0"), (b"7-0", [b"b", b"batch", b"e", b"edges", b"n", b"3"])])
    assert (first.id, first.outcomes, first.batch) == ("6-0", b"outcome", b"")
    assert (second.id, second.batch, second.edges, second.outcomes) == ("7-0", b"batch", b"edges", b"")


def test_a_step_that_got_all_it_asked_for_or_was_cut_short_leaves_some() -> None:
    """More may wait behind, or does."""
    for ids, folded, has_more in ((["1-0", "2-0"], "2-0", True), (["1-0"], "1-0", False), (["1-0"], "0-9", True)):
        inbox = at_rest()
        inbox.command("0-0", 2)
        inbox.record_step(folded, len(inbox.parse(read(*ids))))
        assert (inbox.has_urls, inbox.has_others, inbox.has_more) == (has_more,) * 3


def test_a_look_tells_urls_from_other_entries() -> None:
    """By the counts of URLs; entries behind the last one folded wait in any case."""
    inbox = at_rest()
    inbox.record_view(view("3-0", appended=5, folded_urls=5, folded="2-0"), "2-0")
    assert (inbox.has_urls, inbox.has_others) == (False, True)
    inbox.record_view(view("4-0", appended=9, folded_urls=5, folded="2-0"), "2-0")
    assert (inbox.has_urls, inbox.unfolded_urls) == (True, 4)


def test_urls_that_were_never_folded_do_not_count_as_waiting() -> None:
    """Where nothing waits, what is appended beyond what is folded was rejected, or Redis has forgotten of it."""
    inbox = at_rest()
    inbox.record_view(view("2-0", appended=5, folded_urls=3, folded="2-0"), "2-0")
    assert (inbox.has_urls, inbox.unfolded_urls) == (False, 0)
    inbox.record_view(view("3-0", appended=6, folded_urls=3, folded="2-0"), "2-0")
    assert (inbox.has_urls, inbox.unfolded_urls) == (True, 1)


def test_a_step_that_read_nothing_says_nothing_of_what_waits() -> None:
    """It only admits."""
    inbox = at_rest()
    inbox.record_urls()
    inbox.record_others()
    inbox.record_step("0-0", 0)
    assert (inbox.has_urls, inbox.has_others) == (True, True)


def under_way() -> InboxReader:
    """One whose step has read all there was, and is not over."""
    inbox = at_rest()
    inbox.command("0-0", 10)
    inbox.parse(read("1-0"))
    return inbox


def test_what_is_sent_during_a_step_waits_after_it() -> None:
    """The step has read before: its end says nothing of what was noted meanwhile."""
    inbox = under_way()
    inbox.record_urls()
    inbox.record_step("1-0", 1)
    assert (inbox.has_urls, inbox.has_others, inbox.has_more) == (True, False, False)
    inbox = under_way()
    inbox.record_others()
    inbox.record_step("1-0", 1)
    assert (inbox.has_urls, inbox.has_others, inbox.has_more) == (False, True, False)


def test_what_a_look_finds_during_a_step_waits_after_it_unless_the_step_folds_it() -> None:
    """Each entry is known by its id."""
    for appended, has_urls in ((1, True), (0, False)):
        for folded, is_left in (("1-0", True), ("2-0", False)):
            inbox = under_way()
            inbox.record_view(view("2-0", appended=appended, folded="0-1"), "0-1")
            inbox.record_step(folded, 1)
            assert (inbox.has_urls, inbox.has_others) == (has_urls and is_left, is_left)


def test_what_was_noted_during_one_step_is_read_by_the_next() -> None:
    """Nothing of it is left then, also where Redis has forgotten the entry that a look had found."""
    inbox = under_way()
    inbox.record_urls()
    inbox.record_others()
    inbox.record_view(view("9-0", appended=1), "0-0")
    inbox.record_step("1-0", 1)
    inbox.command("1-0", 10)
    inbox.record_step("1-0", len(inbox.parse([])))
    assert (inbox.has_urls, inbox.has_others, inbox.has_more) == (False, False, False)
