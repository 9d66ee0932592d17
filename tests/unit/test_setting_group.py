"""Groups of settings: one declaration gives row, value and default."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any, Self

import pytest

from bigcrawl.config import Config
from bigcrawl.exceptions import ConfigError
from bigcrawl.setting_group import Group, derived, nested_group, seconds, setting

if TYPE_CHECKING:
    from collections.abc import Mapping


class Pets(Group):
    wait_ms: int = seconds("BIGCRAWL_WAIT", 1.5, "Wait.", (0, 9), title="Pets")
    names: tuple[str, ...] = setting("BIGCRAWL_NAMES", None, "Names.", kind=list)
    owner: str | None = setting("BIGCRAWL_OWNER", None, "Owner.", title="People")
    ages: tuple[int, ...] = setting("BIGCRAWL_AGES", [], "Ages.", parse=(int, "3"))
    count: int = derived(0)

    def derive(self, given: Mapping[str, Any]) -> Self:
        return self.replace(count=len(self.names) + given["OTHERS"])


class House(Group):
    pets: Pets = nested_group(Pets)
    is_red: bool = setting("BIGCRAWL_RED", False, "Red.", title="Houses")


GIVEN = {
    "BIGCRAWL_WAIT": 2.0,
    "BIGCRAWL_NAMES": ["a"],
    "BIGCRAWL_OWNER": "",
    "BIGCRAWL_AGES": ["4"],
    "BIGCRAWL_RED": True,
    "OTHERS": 2,
}


def test_values_are_made_from_checked_ones() -> None:
    pets = House.read(GIVEN).pets
    assert (pets.wait_ms, pets.names, pets.owner, pets.ages, pets.count) == (2_000, ("a",), None, (4,), 3)
    with pytest.raises(ConfigError, match=r"BIGCRAWL_AGES has 'x', which cannot be read: .*e.g. 3"):
        House.read({**GIVEN, "BIGCRAWL_AGES": ["x"]})


def test_rows_have_the_titles_of_the_page() -> None:
    found = [(title, row.name, row.type, row.low, row.high, row.unit) for title, row in House.rows()]
    assert found == [
        ("Pets", "BIGCRAWL_WAIT", float, 0, 9, "s"),
        ("Pets", "BIGCRAWL_NAMES", list, None, None, ""),
        ("People", "BIGCRAWL_OWNER", str, None, None, ""),
        ("People", "BIGCRAWL_AGES", list, None, None, ""),
        ("Houses", "BIGCRAWL_RED", bool, None, None, ""),
    ]


def test_fields_are_given_in_order_or_by_name_or_have_defaults() -> None:
    pets = Pets(5, owner="me")
    assert repr(pets) == "Pets(wait_ms=5, names=(), owner='me', ages=(), count=0)"
    assert pets == Pets(5, (), "me") != Pets(6, (), "me")
    assert pets.replace(wait_ms=6) == Pets(6, (), "me")
    makers: tuple[Any, ...] = (Pets, pets.replace)
    for make in makers:
        with pytest.raises(TypeError, match="no field legs"):
            make(legs=4)


def test_groups_are_values() -> None:
    with pytest.raises(FrozenInstanceError):
        Pets().wait_ms = 3  # type: ignore[misc]


def test_each_setting_has_a_title() -> None:
    assert all(title for title, _ in Config.rows())
