from __future__ import annotations

import ada_url
import pytest

from bigcrawl_simweb.basics.resources import (
    DIRECTORY_PAGES,
    HOMES,
    Kind,
    directory_named_by,
    home_pages,
    resource_with_path,
)
from bigcrawl_simweb.exhibits.table import path_of

# Exhibits and proofs have names of their own, and an offer's first page is a page 0 elsewhere.
KINDS = sorted(set(Kind) - {Kind.EXHIBIT, Kind.PROOF})


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {Kind.HOME, Kind.MADE_UP}))
def test_every_path_names_its_resource(kind: Kind):
    """A path and a resource determine each other, so nothing has to be stored."""
    for number in (*range(1 if kind is Kind.OFFER else 0, 120), 1_000 if kind is Kind.DEEPER else 10**9 - 1):
        assert resource_with_path(path_of(kind, number)) == (kind, number)


def test_every_path_names_its_page_of_a_shared_domain():
    """Each page of each home, and any page of any made-up directory, the last one that is linked to included."""
    fronts = [directory * DIRECTORY_PAGES for directory in range(HOMES + 1)]
    homes = [(Kind.HOME, front + page) for front in fronts for page in range(home_pages(front))]
    made_up = [(Kind.MADE_UP, number) for number in (0, 1, 255, 256, 99 * DIRECTORY_PAGES, 2**40 - 1)]
    for kind, number in (*homes, *made_up):
        assert directory_named_by(path_of(kind, number)) == (kind, number)


@pytest.mark.parametrize("kind", KINDS)
def test_paths_are_canonical(kind: Kind):
    """The URL parser leaves a path as it is: what is linked to is what is asked for."""
    for number in range(120):
        url = "http://127.16.0.1:81" + path_of(kind, number)
        assert ada_url.normalize_url(url) == url


@pytest.mark.parametrize(
    "target",
    [
        *(
            "",
            "/x",
            "/topic-0/item-1",
            "/topic-0/item-01.html",
            "/topic-1/item-1.html",
            "/topic-0/item-1.html?",
        ),
        *("//", "/private/item-9999999999.html", "/find?item=9&topic=1", "/go/-1", "/topic-0/item-1.html\n"),
        *("/calendar/1999/12/", "/calendar/2026/13/", "/calendar/02026/01/", "/shop/item-1.html;jsessionid=0"),
        *("/deeper/down", "/deeper/up/", "/deeper/" + "down/" * 2_001, "/sitemap-0.xml.gz", "/offer-01.html"),
    ],
)
def test_other_paths_name_nothing(target: str):
    """Only the exact path of a resource leads to it."""
    assert resource_with_path(target) is None
