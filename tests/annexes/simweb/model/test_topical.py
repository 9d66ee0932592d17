"""The web of topics: how many pages are about each, where they lead, and that all can be reached."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.links import Links
from bigcrawl_simweb.basics.markup import _WORDS
from bigcrawl_simweb.model.topical import LINKS, TOPICS, TopicalWeb

HOSTS, PAGES = 40, 60
PORT = 8080


@pytest.fixture(scope="module")
def web() -> TopicalWeb:
    return TopicalWeb(5, HOSTS, PAGES)


class _Page:
    def __init__(self, web: TopicalWeb, url: str) -> None:
        host, _, path = url.removeprefix("http://").partition("/")
        answer = web.answer(host.partition(":")[0], f"/{path}", PORT)
        self.url, self.status, self.body, self.headers = url, answer.status, answer.body, dict(answer.headers)


def test_a_twentieth_of_the_pages_is_about_each_topic(web: TopicalWeb) -> None:
    """But for portals; on every host, and half of it on hosts that are about it."""
    counts = [web.count(topic) for topic in range(len(TOPICS))]
    assert sum(counts) == HOSTS * (PAGES - 1)
    assert all(0.04 < count / (HOSTS * PAGES) < 0.06 for count in counts)
    hosts = Counter(host for host in range(HOSTS) for number in range(PAGES) if web.topic_of(host, number) == 3)
    assert len(hosts) == HOSTS
    assert 0.4 < sum(hosts[host] for host in (3, 23)) / counts[3] < 0.6


def test_pages_lead_to_their_like(web: TopicalWeb) -> None:
    """Far more often than others do, and some portals and other pages lead there too."""
    found = {True: Counter[bool](), False: Counter[bool]()}
    for host in range(HOSTS):
        for number in range(PAGES):
            is_about = web.topic_of(host, number) == 0
            found[is_about].update(web.topic_of(*target) == 0 for target in web.links(host, number))
    like, unlike = (found[is_about][True] / found[is_about].total() for is_about in (True, False))
    assert 0.3 < like < 0.5
    assert 0.01 < unlike < 0.04


def test_every_page_can_be_reached_and_says_what_it_links_to(web: TopicalWeb) -> None:
    """From the portals, by the HTML alone; what a page says of itself is what the web knows."""
    seen, waiting = set(), web.seeds(PORT)
    while waiting:
        url = waiting.pop()
        if url in seen:
            continue
        seen.add(url)
        page = _Page(web, url)
        assert page.status == 200, url
        links = Links.from_page(page)
        host, number = web._parse_target(url.split("/")[2].partition(":")[0], "/" + url.split("/", 3)[3]) or (-1, -1)
        assert links.urls == list(dict.fromkeys(web.url(*target, PORT) for target in web.links(host, number)))
        assert len(web.links(host, number)) == LINKS
        waiting += links.urls
    assert len(seen) == HOSTS * PAGES


def test_a_page_speaks_of_its_topic(web: TopicalWeb) -> None:
    """Ten words of it at least; of another one, what links and mentions have."""
    url = web.url(0, 1, PORT)
    assert web.topic_at(url) == 0
    words = re.findall(r"[a-z]+", _Page(web, url).body.decode().lower())
    assert sum(word in TOPICS[0] for word in words) >= 10
    assert web.topic_at(web.url(0, 0, PORT)) is None


def test_no_word_has_two_meanings() -> None:
    """Neither two topics nor a topic and all pages share one, and each is one word for a scorer."""
    words = [word for topic in TOPICS for word in topic]
    assert len(set(words)) == len(words)
    assert not set(words) & set(_WORDS)
    assert all(re.fullmatch("[a-z]+", word) for word in words)


def test_what_is_not_there(web: TopicalWeb) -> None:
    """Another spelling of a page, a page beyond the last, another host."""
    host = "127.16.0.1"
    for target in ("/", "/item-01.html", f"/item-{PAGES}.html", "/nonsense/item-1.html", "/robots.txt"):
        assert web.answer(host, target, PORT).status == 404, target
    assert web.answer("127.16.9.9", "/item-0.html", PORT).status == 421
    assert web.topic_at("http://www.example/item-1.html") is None


@pytest.mark.parametrize(("hosts", "pages"), [(19, 60), (40, 39), (10**9, 60), (40, 10**9)])
def test_a_web_that_cannot_be_is_refused(hosts: int, pages: int) -> None:
    """The message says what can."""
    with pytest.raises(ConfigError, match="must be between"):
        TopicalWeb(1, hosts, pages)
