from __future__ import annotations

import numpy as np
import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.budgets.units import BudgetUnits
from bigcrawl.url.domain import PublicSuffixes
from tests.support.keys import pld_key

SUFFIXES = PublicSuffixes.bundled()


def units_of(*names: str, links_min: int = 2) -> BudgetUnits:
    return BudgetUnits(names, links_min, SUFFIXES.pld, pld_key, SUFFIXES.with_private().pld)


@pytest.mark.parametrize(
    ("name", "url", "unit"),
    [
        ("*.blogs.example", "http://ann.blogs.example/x", "ann.blogs.example"),
        ("*.blogs.example", "http://old.ann.blogs.example/", "ann.blogs.example"),
        ("*.blogs.example", "http://blogs.example/", ""),
        ("*.blogs.example", "http://ann.other.example/", ""),
        ("*.eu.blogs.example", "http://ann.eu.blogs.example/", "ann.eu.blogs.example"),
        ("*.eu.blogs.example", "http://ann.blogs.example/", ""),
        ("*.com", "http://www.a.com/", ""),  # that is a PLD
        ("private", "http://ann.github.io/", "ann.github.io"),
        ("private", "http://x.ann.github.io/", "ann.github.io"),
        ("private", "http://www.a.example/", ""),
        ("*", "http://ann.blogs.example/", "ann.blogs.example"),
        ("*", "http://www.blogs.example/", ""),
        ("*", "http://127.0.0.1/", ""),
        ("www.homes.example/", "http://www.homes.example/ann/x/y.html", "www.homes.example/ann/"),
        ("www.homes.example/", "http://www.homes.example/index.html", ""),
        ("www.homes.example/", "http://www.homes.example//x", ""),
        ("www.homes.example/~", "https://www.homes.example:8443/~ann/x", "www.homes.example/~ann/"),
        ("www.homes.example/~", "https://www.homes.example/ann/x", ""),
        ("www.homes.example/a/b/", "http://www.homes.example/a/b/ann/x", "www.homes.example/a/b/ann/"),
        ("WWW.Homes.example/", "http://www.homes.example/ann/", "www.homes.example/ann/"),
    ],
)
def test_a_url_has_the_unit_of_its_host_or_directory(name: str, url: str, unit: str) -> None:
    host = url.split("/")[2].partition(":")[0]
    assert units_of(name).name_of(host, url) == unit


def test_a_directory_goes_before_its_host() -> None:
    units = units_of("*", "www.homes.example/~")
    assert units.name_of("ann.homes.example", "http://ann.homes.example/~x/") == "ann.homes.example"
    assert units.name_of("www.homes.example", "http://www.homes.example/~x/") == "www.homes.example/~x/"


def test_a_unit_has_an_account_when_enough_plds_link_to_it() -> None:
    units = units_of("*", links_min=3)
    hosts = ["a.x.example", "b.x.example", "x.example", "b.x.example"]
    plds = np.full(4, pld_key("x.example"), dtype=np.uint64)
    keys = units.keys_of_hosts(hosts, plds)
    assert keys[2] == plds[2]
    assert keys[1] == keys[3] != plds[1]
    by_key = {int(keys[0]): 2, int(keys[1]): 3}
    at, in_degrees = units.own_accounts(
        keys, plds, lambda some: np.array([by_key[one] for one in some.tolist()], dtype=np.uint32)
    )
    assert (at.tolist(), in_degrees.tolist()) == ([1, 3], [3, 3])


@pytest.mark.parametrize("name", ["blogs.example", "re:/x/", "*.blogs.example/x/", "", "*.127.0.0.1", "a b/", "/x/"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="BIGCRAWL_BUDGET_UNITS has"):
        units_of(name)
