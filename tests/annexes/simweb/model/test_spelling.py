from __future__ import annotations

from random import Random

import ada_url
import pytest

from bigcrawl_simweb.basics.resources import PLAIN_KINDS
from bigcrawl_simweb.exhibits.table import path_of
from bigcrawl_simweb.model.spelling import Base, relative_path, spell_link
from tests.annexes.simweb.support import without_fragment

PATHS = [path_of(kind, number) for kind in PLAIN_KINDS for number in (0, 4, 6, 9, 14, 21)] + [
    *("/topic-3/", "/a/b/c/d?x=/y/", "/shop/item-0.html;jsessionid=00000001"),
]
HERE = "127.16.0.9:8000"


@pytest.mark.parametrize("authority", [HERE, "127.17.3.4:8000", "www.kodelo.co.uk:8000"])
def test_url_parser_reads_every_spelling_as_the_target(authority: str):
    """However a link is written, it leads to its target, from any base."""
    rng = Random(5)
    for draw in range(4096):
        base, path = Base(HERE, rng.choice(PATHS)), rng.choice(PATHS)
        href = spell_link(draw, authority, path, base)
        link = without_fragment(ada_url.join_url(f"http://{HERE}{base.path}", href))
        assert link == f"http://{authority}{path}", (base.path, href)


def test_spellings_are_many():
    """Fragments, climbing, shouting, raw letters, blanks and strange numbers all occur."""
    base = Base(HERE, "/topic-0/item-1.html")
    written = [spell_link(draw, HERE, "/topic-0/pr%C3%A9cis-6.html", base) for draw in range(4096)]
    for mark in ("#part-", "../../..", "HTTP://", "précis", "%C3%A9", "\n", "0X7F.", "%2e%2E", "//127."):
        assert any(mark in href for href in written), mark
    assert any(href == "pr%C3%A9cis-6.html" for href in written)
    assert any("HTTP://WWW." in spell_link(draw, "www.kodelo.de:80", "/", base) for draw in range(4096))


def test_relative_paths_are_short():
    """A relative reference climbs to the shared directory only."""
    assert relative_path("/a/b/c.html", "/a/b/d.html") == "d.html"
    assert relative_path("/a/b/c.html", "/a/x/") == "../x/"
    assert relative_path("/a/b/", "/a/b/") == "./"
    assert relative_path("/a/b/c", "/") == "../../"
    assert relative_path("/find?p=/q/", "/go/1") == "go/1"
    assert relative_path("/a/b", "/find?p=/q/") == "../find?p=/q/"
