"""BIGCRAWL_CALLBACKS: what a spider can run, and what the settings say of the rest."""

from __future__ import annotations

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.rules.callbacks import ANY_CALLBACKS, DAMAGED, Callbacks


class Spider:
    """Has one method, a name, and a property that fails."""

    name = "spider"

    def parse(self) -> None:
        """A callback."""

    @property
    def broken(self) -> object:
        raise ZeroDivisionError


def test_methods_are_asked_for_and_renamed_and_dropped() -> None:
    """A name that is no method counts as missing, and so does one that raises."""
    callbacks = Callbacks(["old = parse", "gone=", "?="], Spider())
    assert [callbacks.has(name) for name in ("parse", "old", "gone", DAMAGED)] == [True] * 4
    assert [callbacks.has(name) for name in ("name", "broken", "other")] == [False] * 3
    assert [callbacks.drops(name) for name in ("gone", DAMAGED, "old", "other")] == [True, True, False, False]
    assert [callbacks.instead_of(name) for name in ("old", "parse", "gone")] == ["parse", "parse", ""]
    assert callbacks.first_missing(["parse", "other", "more"]) == "other"
    assert callbacks.first_missing(["parse", "no name"]) == DAMAGED
    assert callbacks.first_missing([]) == ""


def test_a_node_without_a_spider_runs_all_but_the_damaged() -> None:
    """As in tests, and in a process that makes no requests of them."""
    assert ANY_CALLBACKS.has("whatever")
    assert not ANY_CALLBACKS.has(DAMAGED)


@pytest.mark.parametrize("entry", ["parse", "=parse", "a b=parse", "?=parse", "old=missing", "old=name", ""])
def test_an_odd_entry_is_refused_at_the_start(entry: str) -> None:
    """The error names it, and a form that is right."""
    with pytest.raises(ConfigError, match=r"BIGCRAWL_CALLBACKS has .*parse_old=parse_item"):
        Callbacks([entry], Spider())
