"""Shared domains: home directories that come to an end, a spammer's that do not, and nothing else that changes."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from urllib.parse import urlsplit

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl_simweb.basics.features import PLAIN, Feature, Naming
from bigcrawl_simweb.basics.resources import HOMES, Kind
from bigcrawl_simweb.model.explain import catalogue, explain
from bigcrawl_simweb.model.names import FARM_MARK, HOMES_MARK
from bigcrawl_simweb.model.web import Web
from tests.annexes.simweb.decoding import leads_in

PORT = 8123
DOMAINS = 2
WITH_HOMES = frozenset({Feature.HOMES})
BESIDE_HOME = "/~user-99/"


@cache
def web_of(homes: int = DOMAINS, *, has_spam: bool = True) -> Web:
    """A web of names; without shared domains for 0."""
    features = WITH_HOMES if homes else PLAIN
    return Web(6, 300, pages=900, naming=Naming.NAME, features=features, homes=homes or None, has_spam=has_spam)


def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def entries(web: Web) -> list[tuple[str, str]]:
    """Each link of a front page to a shared domain, behind the PLD that it is on."""
    links = [(web.pld_of(host_of(seed)), link) for seed in web.seeds(PORT) for link in web.leads_to(seed, PORT)]
    return [(pld, link) for pld, link in links if HOMES_MARK in link]


def homes_in(web: Web) -> set[str]:
    """The URLs of homes that the seeds lead to."""
    return {url for url in web.reachable(PORT, web.seeds(PORT)) if HOMES_MARK in url}


def test_ordinary_links_are_the_same_however_many_homes_there_are() -> None:
    """Front pages have one link more, to a home, and every tenth another one, to spam; without spam it has not."""
    for number, url in enumerate(web_of(0).seeds(PORT)):
        links = web_of(0).leads_to(url, PORT)
        for web, added in (
            (web_of(1), 1 + (number % 10 == 3)),
            (web_of(), 1 + (number % 10 == 3)),
            (web_of(has_spam=False), 1),
        ):
            with_homes = web.leads_to(url, PORT)
            assert with_homes[: len(links)] == links
            assert [HOMES_MARK in link for link in with_homes[len(links) :]] == [True] * added
            assert sum(FARM_MARK in link for link in with_homes) == added - 1


def test_some_homes_have_links_from_many_domains_and_some_from_few() -> None:
    linking = defaultdict(set)
    for pld, link in entries(web_of()):
        if FARM_MARK not in link:
            linking[link].add(pld)
    counts = sorted(len(plds) for plds in linking.values())
    assert len(counts) > 0.8 * DOMAINS * HOMES
    assert counts[len(counts) // 4] <= 3
    assert counts[-1] > 20


def test_homes_come_to_an_end_and_are_what_a_crawl_must_find() -> None:
    """A few pages each, all of which are required; spam beside them changes nothing, and none of it is expected."""
    web = web_of()
    homes = homes_in(web)
    assert homes == homes_in(web_of(has_spam=False))
    assert {urlsplit(url).path.split("/")[1] for url in homes} <= {f"~user-{number}" for number in range(1, HOMES + 1)}
    assert 2 * DOMAINS * HOMES < len(homes) < 8 * DOMAINS * HOMES
    expected = web.expected(PORT, web.seeds(PORT))
    for url in homes:
        assert expected[url].required
        assert set(web.leads_to(url, PORT)) <= homes
        assert not web.is_endless(host_of(url), urlsplit(url).path)
    ordinary = web_of(0).reachable(PORT, web_of(0).seeds(PORT))
    assert web.reachable(PORT, web.seeds(PORT)).keys() == ordinary.keys() | homes


def test_any_other_directory_leads_to_ever_new_ones() -> None:
    """Whoever made up its name: up to ten pages of its own and a hundred other directories of the host, all endless."""
    web = web_of()
    host = web.shared_hosts()[0]
    spam = next(link for _, link in entries(web) if FARM_MARK in link)
    for start in (spam, f"http://{host}:{PORT}{BESIDE_HOME}", f"http://{host}:{PORT}/~user-01/page-7.html"):
        url, seen = start, {start}
        for _ in range(20):
            links = set(web.leads_to(url, PORT))
            assert {host_of(link) for link in links} == {host_of(start)}
            directories = [urlsplit(link).path.rpartition("/")[0] for link in links]
            assert len(set(directories)) > 100
            assert 5 < max(map(directories.count, directories)) <= 10
            url = next(link for link in sorted(links) if link not in seen)
            assert web.resource_at(url).kind is Kind.MADE_UP  # type: ignore[union-attr]
            assert web.is_endless(host_of(url), urlsplit(url).path)
            assert not web.expectation(url).required
            seen |= links


def test_links_told_are_those_of_the_page() -> None:
    """On homes and in made-up directories; what is no page of a home, or no directory, is not there."""
    web = web_of()
    host = web.shared_hosts()[0]
    for target in ("/", "/~user-1/", "/~user-7/page-2.html", BESIDE_HOME):
        answer = web.answer(host, target, PORT)
        assert answer.status == 200
        assert leads_in(f"http://{host}:{PORT}{target}", answer) == set(web.leads_to(f"http://{host}{target}", PORT))
    for target in ("/~user-1", "/~user-1/page-0.html", "/~user-1/page-9.html", "/user-1/", "/~a/b/", "/~/"):
        assert web.answer(host, target, PORT).status == 404, target
    assert web.answer(host, "/robots.txt", PORT).status == 404
    assert web.answer(web.name_of(0), "/~user-1/", PORT).status == 404


def test_people_are_told_what_is_a_home() -> None:
    web = web_of()
    host = web.shared_hosts()[0]
    home, spam = (list(explain(web, f"http://{host}{target}", PORT, 0)) for target in ("/~user-1/", BESIDE_HOME))
    assert "is a shared domain" in home[0]
    assert "home" in home[1]
    assert "space without end" in spam[1]
    assert any(row.startswith("homes ") and f"/~user-{HOMES}/" in row for row in catalogue())


def test_homes_need_the_feature_names_and_a_number() -> None:
    """What would be ignored is an error."""
    assert len(web_of().shared_hosts()) == DOMAINS
    assert web_of(0).shared_hosts() == []
    for naming, features, homes in (
        (Naming.NAME, PLAIN, 3),
        (Naming.ADDRESS, WITH_HOMES, 3),
        (Naming.NAME, WITH_HOMES, 0),
    ):
        with pytest.raises(ConfigError, match="homes is"):
            Web(6, 300, pages=900, naming=naming, features=features, homes=homes)
