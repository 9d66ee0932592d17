"""The shape of URLs: what traps make, and what sites that are none make too."""

from __future__ import annotations

import pytest

from bigcrawl.config import read_config
from bigcrawl.features.traps.settings import TrapConfig
from bigcrawl.features.traps.shape import KINDS, UrlShapes, kinds_of
from bigcrawl.url.canonical import canonicalize
from bigcrawl_simweb.basics.resources import PATHS, Kind
from tests.support.costs.proportion import assert_costs

CONFIG = read_config({}).feature_config(TrapConfig)
SHAPES = UrlShapes(CONFIG)
SITE = "https://www.a.example"


def kinds(path: str, depth: int = 0) -> list[str]:
    return kinds_of(SHAPES.traits(SITE + path, depth))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/" + "x" * 400, ["long"]),
        ("/a/b/a/b/a/b", ["repeats"]),
        ("/css/css/css/style.html", ["repeats"]),
        ("/" + "/".join(map(str, range(14))), ["deep"]),
        ("/shop/item-3.html;jsessionid=0a1b2c3d4e5f", ["session"]),
        ("/index.php?PHPSESSID=d41d8cd98f00b204e980", ["session"]),
        ("/page?a=1&sid=d41d8cd98f00b204e980", ["session"]),
        ("/(S(lit3py55t21z5v55vlm25s55))/order.aspx", ["session"]),
        ("/calendar/2031-07.html", ["calendar"]),
        ("/Kalender/?monat=7&jahr=2031", ["calendar"]),
        ("/events/2031/07/", ["calendar"]),
        ("/rooms?date=2031-07-01", ["calendar"]),
        ("/calendar/calendar?agenda&events/2031", ["calendar"]),
        ("/rooms?a&my-date-of-arrival=-1", ["calendar"]),
        ("/shoes?color=red&size=9&brand=x&sort=price", ["parameters"]),
        ("/shoes?" + "&".join(f"c{n}={n}" * 20 for n in range(6)), ["long", "parameters"]),
    ],
)
def test_url_of_a_trap_is_known_by_its_shape(path: str, found: list[str]) -> None:
    """Each kind by its own rule, and a URL may be of several."""
    assert kinds(path) == found


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/2024/05/12/what-happened.html",
        "/wiki/Calendar",
        "/inventory/2024",
        "/a/b/a/c",
        "/a//b//c//d",
        "/a/b/c/d/e/f/g/h/i/j/k",
        "/forum/topic?t=123456&page=2",
        "/inside?sid=3",
        "/search?q=side+effects",
        "/events/summer-party",
        "/adventure/agenda",
        "/calendar?from=2031",
        "/rooms?date",
    ],
)
def test_url_of_an_ordinary_site_is_not(path: str) -> None:
    """Dates of news, threads of forums, words that begin like others."""
    assert kinds(path) == []


def test_many_hops_are_a_depth_too() -> None:
    """However short the URL is."""
    assert kinds("/x", CONFIG.hops) == []
    assert kinds("/x", CONFIG.hops + 1) == ["deep"]


@pytest.mark.parametrize("site", ["http://a", SITE])
def test_each_bound_is_the_first_or_last_value_of_its_kind(site: str) -> None:
    """Longer than its bytes, deeper than its segments, as many repetitions and parameters as set."""
    room, segments = CONFIG.url_bytes - len(site), [f"/{number}" for number in range(CONFIG.segments + 1)]
    rows = [
        ("/" + "x" * (room - 1), "/" + "x" * room, "long"),
        ("".join(segments[1:]), "".join(segments), "deep"),
        ("/a" * (CONFIG.repeats - 1), "/a" * CONFIG.repeats, "repeats"),
        ("/?a" + "&b" * (CONFIG.parameters - 2), "/?a" + "&b" * (CONFIG.parameters - 1), "parameters"),
    ]
    for path, one_more, kind in rows:
        assert kinds_of(SHAPES.traits(site + path)) == []
        assert kinds_of(SHAPES.traits(site + one_more)) == [kind]


def test_the_query_is_no_part_of_the_path_and_the_path_none_of_the_query() -> None:
    """Slashes count in the one, ampersands in the other."""
    assert kinds("/x?" + "/a" * (CONFIG.segments + 1)) == []
    assert kinds("/x" + "&a" * CONFIG.parameters) == []
    assert kinds("/x" + "&a" * CONFIG.parameters + "?a") == []


def test_thresholds_are_the_settings() -> None:
    """Each bound is the first value that is marked, or the last that is not, as its text says."""
    loose = UrlShapes(CONFIG.replace(url_bytes=1000, repeats=4, segments=40, hops=99, parameters=5))
    for path in ("/" + "x" * 400, "/a/b/a/b/a/b", "/" + "/".join(map(str, range(14))), "/shoes?a=1&b=2&c=3&d=4"):
        assert loose.traits(SITE + path, 60) == 0


@pytest.mark.parametrize(
    ("kind", "name"), [(Kind.CALENDAR, "calendar"), (Kind.SESSION, "session"), (Kind.DEEPER, "repeats")]
)
def test_endless_spaces_of_the_simulated_web_are_known(kind: Kind, name: str) -> None:
    """All of them, far enough in: a session has an id then, and a path is deep."""
    for number in (50, 97, 1_000):
        assert name in kinds_of(SHAPES.traits(f"http://h.example{PATHS[kind](number)}"))


def test_pages_of_the_simulated_web_are_not() -> None:
    """None of its ordinary pages."""
    for number in range(300):
        assert not SHAPES.traits(f"http://h.example{PATHS[Kind.PAGE](number)}")


def test_marking_costs_next_to_nothing() -> None:
    """At most four times what a URL's canonical form costs; it is twice that, a microsecond."""
    urls = [f"https://www.a.example/section/{n}/article-{n}.html" for n in range(500)]
    urls += [f"https://www.a.example/topic?t={n}&page=2" for n in range(500)]
    assert_costs(4, lambda: [SHAPES.traits(url, 3) for url in urls], lambda: [canonicalize(url) for url in urls])


def test_marks_stand_on_disk() -> None:
    """Their bits never change."""
    assert KINDS[:6] == ("long", "repeats", "deep", "session", "calendar", "parameters")
