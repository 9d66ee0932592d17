from __future__ import annotations

from random import Random

import ada_url
import pytest

from bigcrawl.simweb.resources import Kind, path_of
from bigcrawl.simweb.spelling import Place, relative_path, spell
from tests.unit.simweb.support import without_fragment

PATHS = [path_of(kind, number) for kind in Kind for number in (0, 4, 6, 9, 14, 21)] + [
    "/topic-3/",
    "/a/b/c/d?x=/y/",
]


def url_of(place: Place) -> str:
    return f"http://{place.address}:{place.port}{place.path}"


@pytest.mark.parametrize("far", [False, True])
def test_url_parser_reads_every_spelling_as_the_target(far: bool):
    """However a link is written, it leads to its target, from any base."""
    rng = Random(5)
    for _ in range(4000):
        base = Place("127.16.0.9", 8000, rng.choice(PATHS))
        target = Place("127.17.3.4" if far else base.address, 8000, rng.choice(PATHS))
        href = spell(rng, target, base)
        assert without_fragment(ada_url.join_url(url_of(base), href)) == url_of(target), (base, href)


def test_spellings_are_many():
    """Fragments, climbing, shouting, raw letters, blanks and strange numbers all occur."""
    rng = Random(6)
    base = Place("127.16.0.9", 8000, "/topic-0/item-1.html")
    target = base._replace(path="/topic-0/pr%C3%A9cis-6.html")
    written = [spell(rng, target, base) for _ in range(1000)]
    for mark in ("#part-", "../../..", "HTTP://", "précis", "%C3%A9", "\n", "0X7F.", "%2e%2E", "//127."):
        assert any(mark in href for href in written), mark
    assert any(href == "pr%C3%A9cis-6.html" for href in written)


def test_relative_paths_are_short():
    """A relative reference climbs to the shared directory only."""
    assert relative_path("/a/b/c.html", "/a/b/d.html") == "d.html"
    assert relative_path("/a/b/c.html", "/a/x/") == "../x/"
    assert relative_path("/a/b/", "/a/b/") == "./"
    assert relative_path("/a/b/c", "/") == "../../"
    assert relative_path("/find?p=/q/", "/go/1") == "go/1"
    assert relative_path("/a/b", "/find?p=/q/") == "../find?p=/q/"
