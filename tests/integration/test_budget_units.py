"""Hosts and directories of shared domains have budgets by the domains that link to them, in a real crawl."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below
from tests.support.servers.named_web import NamedWeb

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GOOD: Final = "ann.blogs.example"
FARM: Final = tuple(f"offer{number}.blogs.example" for number in range(6))
HOMES: Final = "www.homes.example"
LINKING: Final = tuple(f"www.site{number}.example" for number in range(4))
PAGES: Final = 10
SETTINGS: Final = {
    "BIGCRAWL_HOST_DELAY": 0.01,
    "BIGCRAWL_STEP_SECONDS": 0.2,
    "BIGCRAWL_BUDGET_UNITS": f"*.blogs.example,{HOMES}/~",
    "BIGCRAWL_BUDGET_UNIT_LINKS": 3,
}


def pages() -> Iterator[tuple[str, str]]:
    """Four sites link to one host of a shared domain and to one home; the domain's other hosts link to each other."""
    known = f'<a href="http://{GOOD}:{{port}}/0">x</a><a href="http://{HOMES}:{{port}}/~bob/0">x</a>'
    farm = "".join(f'<a href="http://{host}:{{port}}/0">x</a>' for host in FARM)
    for number in range(PAGES):
        onward = (number + 1) % PAGES
        for host, links in {GOOD: "", **dict.fromkeys(LINKING, known), **dict.fromkeys(FARM, farm)}.items():
            yield f"{host}/{number}", f'<a href="/{onward}">x</a>{links}'
        yield f"{HOMES}/~bob/{number}", f'<a href="/~bob/{onward}">x</a>'


def test_links_of_other_domains_give_a_host_and_a_home_their_budgets(tmp_path: Path) -> None:
    """How many pass is asked of a partition: tests/unit/scheduler/partition/fold/test_budget_units.py."""
    names = dict.fromkeys((GOOD, HOMES, *FARM, *LINKING), "127.0.0.1")
    with no_strays_below(tmp_path), NamedWeb(["127.0.0.1"], names, dict(pages())) as web:
        seeds = [web.url(host, "/0") for host in (*LINKING, FARM[0])]
        with Crawl(tmp_path / "crawl", seeds, {**SETTINGS, "BIGCRAWL_DNS_SERVERS": web.name_server}) as crawl:
            crawl.start()
            assert crawl.wait(300) == 0
            fetched = Counter(hit.host for hit in web.hits if hit.target != "/robots.txt")
            assert fetched == dict.fromkeys(names, PAGES), "each page once"
            unit = crawl.asked("budget", GOOD)["unit"]
            assert unit == {"name": GOOD, "in_degree": len(LINKING), "links_min": 3, "has_budget": True}
            assert f"{GOOD} has a budget of its own: 4 other PLDs" in crawl.frontier("budget", GOOD).stdout
            home = crawl.asked("budget", f"{HOMES}/~bob/")["unit"]
            assert (home["name"], home["in_degree"]) == (f"{HOMES}/~bob/", len(LINKING))
            made_up = crawl.asked("budget", FARM[1])["unit"]
            assert (made_up["in_degree"], made_up["has_budget"]) == (0, False)
            assert f"{FARM[1]} shares that of its domain" in crawl.frontier("budget", FARM[1]).stdout
            assert crawl.asked("budget", LINKING[0])["unit"] is None
