"""Spam farms: as many as asked for, who point to each other, and change nothing of the rest."""

from __future__ import annotations

from functools import cache

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl_simweb.basics.features import PLAIN, Feature, Naming
from bigcrawl_simweb.model.names import FARM_MARK, FARMS_MAX
from bigcrawl_simweb.model.web import Web
from tests.annexes.simweb.decoding import leads_in

PORT = 8123
FARMS = 12
WITH_FARMS = frozenset({Feature.FARMS})


@cache
def web_of(farms: int | None) -> Web:
    """A web of names; without farms for 0."""
    features = WITH_FARMS if farms != 0 else PLAIN
    return Web(6, 300, pages=900, naming=Naming.NAME, features=features, farms=farms or None)


def host_of(url: str) -> str:
    return url.removeprefix("http://").partition("/")[0].partition(":")[0]


def spam_in(urls: list[str]) -> list[str]:
    return [url for url in urls if FARM_MARK in url]


def test_ordinary_links_are_the_same_however_many_farms_there_are() -> None:
    """Front pages lose one link more or less: the last one, to a farm, on every fifth host."""
    linking = 0
    for url in web_of(0).seeds(PORT):
        links = web_of(0).leads_to(url, PORT)
        for farms in (1, FARMS):
            with_farm = web_of(farms).leads_to(url, PORT)
            assert with_farm[: len(links)] == links
            assert len(spam_in(with_farm)) == len(with_farm) - len(links) <= 1
            linking += len(with_farm) - len(links)
    assert linking == 2 * 300 // 5


def test_farms_point_to_all_others_after_a_few_pages() -> None:
    """Any farm's in-degree from other farms is as high as it can be; from ordinary PLDs a few have one."""
    web = web_of(FARMS)
    entries = [url for seed in web.seeds(PORT) for url in spam_in(web.leads_to(seed, PORT))]
    assert len({web.pld_of(host_of(url)) for url in entries}) > FARMS // 2
    start = entries[0]
    own = web.pld_of(host_of(start))
    pages = [url for url in web.leads_to(start, PORT) if web.pld_of(host_of(url)) == own][:5]
    pointed_to = {web.pld_of(host_of(link)) for page in pages for link in web.leads_to(page, PORT)}
    assert len(pointed_to) == FARMS


def test_links_told_are_those_of_the_page() -> None:
    """What `leads_to` says is what a reader of the HTML finds, on pages and on farms; of nothing it is nothing."""
    web = web_of(FARMS)
    home = web.seeds(PORT)[0]
    farm = spam_in(web.leads_to(home, PORT))[0]
    for url in (home, farm):
        answer = web.answer(host_of(url), "/", PORT)
        assert leads_in(url, answer) == set(web.leads_to(url, PORT))
    assert web.leads_to(f"{home}nothing.html", PORT) == []
    assert web.leads_to("http://elsewhere.example/", PORT) == []


def test_farms_need_the_feature_names_and_a_number() -> None:
    """What would be ignored is an error."""
    assert len({web_of(FARMS).pld_of(host_of(url)) for url in farm_urls(web_of(FARMS))}) == FARMS
    for naming, features, farms in (
        (Naming.NAME, PLAIN, 3),
        (Naming.ADDRESS, WITH_FARMS, 3),
        (Naming.NAME, WITH_FARMS, 0),
        (Naming.NAME, WITH_FARMS, FARMS_MAX + 1),
    ):
        with pytest.raises(ConfigError, match="farms is"):
            Web(6, 300, pages=900, naming=naming, features=features, farms=farms)


def farm_urls(web: Web) -> set[str]:
    """Spam that is found within two links of the seeds."""
    entries = {url for seed in web.seeds(PORT) for url in spam_in(web.leads_to(seed, PORT))}
    return entries | {link for entry in entries for link in web.leads_to(entry, PORT)}
