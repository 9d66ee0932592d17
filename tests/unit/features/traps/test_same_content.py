"""The same content under many URLs: what a node notes of the pages it fetches, and what it tells of them."""

from __future__ import annotations

import pytest

from bigcrawl.features.traps import page as module
from bigcrawl.features.traps.page import WINDOW, SameContent
from bigcrawl.features.traps.verdicts import SAME_CONTENT
from bigcrawl.scheduler.records.outcomes import unpack_outcomes
from tests.support.keys import pld_key
from tests.support.worlds.partition_world import pld_of

HOST, PLD = "www.a.example", "a.example"


def told(remark: bytes) -> tuple[int, int, int]:
    """PLD, code and number of pages of the one row that is told."""
    [key], [value] = unpack_outcomes([("1-0", remark)])
    return int(key), int(value["code"]), int(value["detail"])


def window(seen: SameContent, different: int, host: str = HOST) -> list[bytes]:
    """Fetch a window of pages of so many contents; what was told."""
    return [remark for n in range(WINDOW) if (remark := seen.record_page(host, b"page %d" % (n % different)))]


def test_window_of_the_same_pages_is_told_when_it_is_full() -> None:
    """Once, with about how many they are; and again only when it is otherwise."""
    seen = SameContent(0.5, pld_of, pld_key)
    [remark] = window(seen, 1)
    assert told(remark) == (pld_key(PLD), SAME_CONTENT, WINDOW - 1)
    assert window(seen, 1) == []
    [remark] = window(seen, WINDOW)
    assert told(remark) == (pld_key(PLD), SAME_CONTENT, 0)
    assert window(seen, WINDOW) == []


@pytest.mark.parametrize(("different", "is_trap"), [(16, True), (24, True), (42, False), (64, False)])
def test_share_decides(different: int, is_trap: bool) -> None:
    """Few bits tell about how many contents there are."""
    [remark] = window(SameContent(0.5, pld_of, pld_key), different)
    assert (told(remark)[2] > 0) is is_trap


def test_pages_of_all_hosts_of_a_pld_count_together() -> None:
    """And those of another PLD apart."""
    seen = SameContent(0.5, pld_of, pld_key)
    remarks = [seen.record_page(f"h{n}.farm.example", b"page") for n in range(WINDOW - 1)]
    assert not any(remarks)
    assert seen.record_page(HOST, b"page") == b""
    assert told(seen.record_page("last.farm.example", b"page"))[0] == pld_key("farm.example")


def test_plds_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one fetched from longest ago; its window begins anew."""
    monkeypatch.setattr(module, "PLDS_KEPT", 2)
    seen = SameContent(0.5, pld_of, pld_key)
    for host in ("a.example", "b.example", "a.example", "c.example"):
        seen.record_page(host, b"page")
    assert list(seen._seen) == ["a.example", "c.example"]
