from __future__ import annotations

from collections import deque
from random import Random

import pytest
from protego import Protego

from bigcrawl.exceptions import ConfigError
from bigcrawl_simweb.model.uniform import LINKS, LOCAL_LINKS, NEW_LINKS, PAGE_BYTES, UniformWeb
from tests.annexes.simweb.support import links_in

HOSTS = 40


def page(web: UniformWeb, url: str) -> bytes:
    host, _, path = url.removeprefix("http://").partition("/")
    answer = web.answer(host, "/" + path, 80)
    assert answer.status == 200
    return answer.body


def crawl_shares(web: UniformWeb, order: str, pages: int, seeds: list[str]) -> list[float]:
    """The share of links that are new, of each 100 pages of a crawl in this order."""
    rng, waiting, seen = Random(1), deque(seeds), set(seeds)
    new = []
    for _ in range(pages):
        if order == "any":
            waiting.rotate(rng.randrange(len(waiting)))
        url = waiting.pop() if order == "last first" else waiting.popleft()
        fresh = sorted(links_in(url, page(web, url)) - seen)
        new.append(len(fresh))
        seen.update(fresh)
        waiting += fresh
    return [sum(new[start : start + 100]) / 100 / LINKS for start in range(0, pages, 100)]


@pytest.mark.parametrize("order", ["first first", "last first", "any"])
def test_one_link_in_ten_is_new_in_any_order(order: str):
    """From the menus on, exactly six links of every page lead to what nothing linked to before."""
    web = UniformWeb(5, HOSTS)
    assert crawl_shares(web, order, 200, list(web.menus(80))) == [NEW_LINKS / LINKS] * 2


def test_menus_are_new_once_a_host():
    """From the seeds on, every host's menu is new once; behind that, six links a page."""
    web = UniformWeb(5, HOSTS)
    shares = crawl_shares(web, "first first", 200, web.seeds(80))
    assert sum(share * 100 * LINKS for share in shares) == 200 * NEW_LINKS + HOSTS * 43
    assert shares[-1] == NEW_LINKS / LINKS


@pytest.mark.parametrize("number", [0, 39, 40, 1759, 1760, 99_999, 10**12 + 7, 10**17 * 9, 10**18 + 3, 10**19 - 1])
def test_every_page_is_of_one_size_and_linkage(number: int):
    """21,000 bytes, 60 different links, 48 of them to the page's own host; whatever its number."""
    web = UniformWeb(5, HOSTS)
    url = web._url_of_page(number, 80)
    body = page(web, url)
    links = links_in(url, body)
    assert len(body) == PAGE_BYTES
    assert len(links) == body.count(b"<a ") == LINKS
    local = sum(link.startswith(url[: url.index("/", 7) + 1]) for link in links)
    # The one far child may happen to live here as well.
    assert local in (LOCAL_LINKS, LOCAL_LINKS + 1)
    assert url not in links
    for link in links:
        assert len(page(web, link)) == PAGE_BYTES


def test_children_are_nobody_elses():
    """Pages far apart and near each other have different children, below and above the end of the tree."""
    web = UniformWeb(5, HOSTS)
    numbers = [*range(2_000), *range(10**17 * 2, 10**17 * 2 + 500), *range(10**18, 10**18 + 500)]
    children = [child for number in numbers for child in web.children(number)]
    assert len(set(children)) == len(children) == NEW_LINKS * len(numbers)
    assert all(web.host_of(child) == web.host_of(number) for number in numbers for child in web.children(number)[:5])


def test_robots_txt_has_rules_that_close_nothing_linked():
    """There is something to parse and to match, and nothing is lost by it."""
    web = UniformWeb(5, HOSTS)
    parsed = Protego.parse(web.answer("127.16.0.3", "/robots.txt", 80).body.decode())
    for target in ("/page/3.html", "/private/x", "/cgi-bin/a", "/page/3.html?session=1", "/a.pdf", "/a.pdf.html"):
        assert web.allows("127.16.0.3", target) == parsed.can_fetch(f"http://h{target}", "bigcrawl"), target
    assert web.allows("127.16.0.3", "/page/3.html")
    assert not web.allows("127.16.0.3", "/private/x")


@pytest.mark.parametrize(
    ("host", "target", "status"),
    [
        ("127.16.0.1", "/page/1.html", 404),
        ("127.16.0.1", "/page/00.html", 404),
        ("127.16.0.1", f"/page/{10**19}.html", 404),
        ("127.16.0.1", "/", 404),
        ("127.16.0.41", "/page/40.html", 421),
        ("www.example.org", "/page/40.html", 421),
    ],
)
def test_page_is_on_its_own_host_alone(host: str, target: str, status: int):
    """Every page has one URL."""
    assert UniformWeb(5, HOSTS).answer(host, target, 80).status == status


def test_smallest_and_refused_sizes():
    """A web of one host has no far pages but its own; none cannot be."""
    web = UniformWeb(5, 1)
    (seed,) = web.seeds(8080)
    assert seed == "http://127.16.0.1:8080/page/0.html"
    assert len(web.answer("127.16.0.1", "/page/0.html", 8080).body) == PAGE_BYTES
    with pytest.raises(ConfigError, match="hosts is 0; must be between 1 and"):
        UniformWeb(5, 0)
