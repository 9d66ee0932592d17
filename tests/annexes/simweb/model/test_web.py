from __future__ import annotations

import hashlib
import subprocess
import sys
import tracemalloc
from collections import Counter

import pytest
from selectolax.lexbor import LexborHTMLParser

from bigcrawl.exceptions import ConfigError
from bigcrawl_simweb.basics.addresses import HOSTS_MAX, address_of, origin_of
from bigcrawl_simweb.basics.features import ALL, Naming
from bigcrawl_simweb.basics.resources import PLAIN_KINDS, Kind
from bigcrawl_simweb.exhibits.table import path_of
from bigcrawl_simweb.model.web import Web
from tests.annexes.simweb.support import LINKS, hrefs_in, links_in

PORT = 8123


def everything(web: Web) -> dict[str, tuple[int, bytes, tuple[tuple[str, str], ...]]]:
    pages = {}
    for host in range(web.hosts):
        for resource in web.resources(host):
            path = path_of(resource.kind, resource.number)
            page = web.answer(address_of(host), path, PORT)
            pages[origin_of(address_of(host), PORT) + path] = (page.status, page.body, page.headers)
    return pages


def test_same_arguments_give_the_same_web():
    """Every byte follows from the arguments, in whatever order pages are asked for."""
    first, second = Web(3, 4, 20), Web(3, 4, 20)
    backwards = dict(reversed(everything(second).items()))
    assert everything(first) == everything(second) == backwards
    assert first.reachable(PORT, first.seeds(PORT)) == second.reachable(PORT, second.seeds(PORT))


def test_another_process_gives_the_same_web():
    """Nothing depends on the process, such as its hash seed."""
    code = (
        "import hashlib; from bigcrawl_simweb.model.web import Web; web = Web(3, 2, 9);"
        "print(hashlib.sha256(web.answer('127.16.0.2', '/', 80).body).hexdigest())"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == hashlib.sha256(Web(3, 2, 9).answer("127.16.0.2", "/", 80).body).hexdigest()


def test_another_seed_gives_another_web():
    """The seed decides links and text."""
    assert Web(3, 4, 20).answer("127.16.0.2", "/", 80).body != Web(4, 4, 20).answer("127.16.0.2", "/", 80).body


def test_pages_are_of_realistic_size_and_linkage():
    """HTML pages have 5 to 25 KB and, framesets apart, 20 to 60 links, four in five of them local."""
    web = Web(5, 6, 60)
    local = Counter[bool]()
    for url, (status, body, headers) in everything(web).items():
        if status != 200 or ("Content-Type", "text/html; charset=utf-8") not in headers:
            continue
        assert 5_000 <= len(body) <= 25_000
        hrefs = hrefs_in(body)[1]
        if b"<frameset" in body:
            assert 3 <= len(hrefs) <= 8
        else:
            assert 20 <= len(hrefs) - 1 <= 60  # one more is a dead end such as mailto:
        local.update(link.startswith(url[: url.index("/", 7)]) for link in links_in(url, body))
    assert 0.7 <= local[True] / local.total() <= 0.9


@pytest.mark.parametrize(
    "mark",
    [
        *(b"<base href=", b"<area ", b"<frame ", b"<iframe ", b"<A TITLE", b"mailto:", b"javascript:"),
        *(b"HTTP://", b"../", b"#part-", b"&amp;", b"<!-- <a href", b"<script>"),
    ],
)
def test_small_web_has_all_the_noise(mark: bytes):
    """Even a small web writes its links in every way there is."""
    assert any(mark in body for _, body, _ in everything(Web(7, 8, 14)).values())


def test_parsers_of_two_schools_find_the_same_links():
    """The HTML misleads neither libxml2 nor an HTML5 parser: a link is one to both."""
    for url, (status, body, _) in everything(Web(8, 6, 14)).items():
        if status != 200 or url.endswith(".txt"):
            continue
        base, hrefs = hrefs_in(body)
        tree = LexborHTMLParser(body)
        found = [node.attributes[LINKS[node.tag or ""]] for node in tree.css("a[href], area[href], frame, iframe")]
        first_base = tree.css_first("base[href]")
        assert sorted(hrefs) == sorted(href or "" for href in found)
        assert base == (first_base.attributes["href"] if first_base else None)


def test_small_web_reaches_all_kinds_of_answers():
    """A web as small as the tests use leads to pages, errors and redirects of each kind, and to all pages."""
    web = Web(7, 8, 14)
    reachable = web.reachable(PORT, web.seeds(PORT), obey_robots=False)
    assert set(reachable.values()) == {200, 301, 302, 404, 500, 503}
    for kind in set(PLAIN_KINDS) - {Kind.ASSET}:
        paths = {path_of(kind, number) for number in range(14)}
        assert any(url[url.index("/", 7) :] in paths for url in reachable), kind
    pages = {path_of(Kind.PAGE, number) for number in range(14)}
    assert sum(url[url.index("/", 7) :] in pages for url in reachable) == 8 * 14


def test_reachable_leaves_out_what_robots_forbids_and_hides():
    """With robots obeyed nothing forbidden is reachable, nor what only forbidden pages link to."""
    web = Web(7, 8, 14)
    obedient = web.reachable(PORT, web.seeds(PORT))
    free = web.reachable(PORT, web.seeds(PORT), obey_robots=False)
    assert obedient.items() < free.items()
    forbidden = {url for url in free if not web.allows(url[7 : url.index(":", 7)], url[url.index("/", 7) :])}
    assert forbidden
    assert not forbidden & obedient.keys()
    assert free.keys() - obedient.keys() - forbidden
    assert not any(url.endswith("/robots.txt") for url in free)


def test_redirects_make_short_chains_and_one_loop():
    """Chains cross hosts and end; the only endless one is the loop."""
    web = Web(7, 8, 14)
    targets = {}
    for url, (status, _, headers) in everything(web).items():
        if status in (301, 302):
            targets[url] = next(iter(links_in(url, f'<a href="{dict(headers)["Location"]}">'.encode())))
    lengths, loops = Counter[int](), set()
    for start in targets:
        chain = [start]
        while (ahead := targets.get(chain[-1])) and ahead not in chain:
            chain.append(ahead)
        lengths[len(chain)] += 1
        if ahead:
            loops.add(start)
    assert set(lengths) >= {2, 3}
    assert max(lengths) <= 5
    assert {url[url.index("/", 7) :] for url in loops} == {"/go/loop-0", "/go/loop-1"}
    assert any(url[:20] != target[:20] for url, target in targets.items())


@pytest.mark.parametrize(
    ("host", "target", "status"),
    [
        ("127.0.0.1", "/", 421),
        ("127.16.0.3", "/", 421),
        ("127.16.0.1", "/topic-9/item-72.html", 404),
        ("127.16.0.1", "/phantom/comment-1.html", 404),
        ("127.16.0.1", "/?", 404),
        ("127.16.0.1", "*", 404),
    ],
)
def test_what_is_not_there_is_an_error(host: str, target: str, status: int):
    """An address outside the web is misdirected; a path of nothing is not found."""
    assert Web(1, 2, 20).answer(host, target, PORT).status == status


@pytest.mark.parametrize(
    "url",
    [
        "http://127.16.0.1/",
        f"http://127.16.0.9:{PORT}/",
        f"http://127.16.0.1:{PORT}",
        f"https://127.16.0.1:{PORT}/",
        f"http://127.16.0.1:{PORT}/#top",
        f"http://127.16.0.1:{PORT}/nothing",
        "http://[/",
        "rubbish",
    ],
)
def test_seed_of_another_web_is_refused(url: str):
    """An answer about URLs that are not the web's would be wrong, so there is none."""
    with pytest.raises(ConfigError, match="not a canonical URL of Web"):
        Web(1, 2, 20).reachable(PORT, [url])


@pytest.mark.parametrize(("hosts", "pages"), [(0, 1), (HOSTS_MAX + 1, 1), (1, 0), (1, 10**9)])
def test_sizes_have_bounds(hosts: int, pages: int):
    """A web that cannot be addressed is refused, with its bounds."""
    with pytest.raises(ConfigError, match="must be between 1 and"):
        Web(1, hosts, pages)


def test_smallest_web_is_whole():
    """One host with one page has everything else too."""
    web = Web(1, 1, 1)
    reachable = web.reachable(80, web.seeds(80))
    assert reachable["http://127.16.0.1/"] == 200
    assert len(set(reachable.values())) > 3


def test_web_of_many_pages_is_as_skewed_as_the_real_one():
    """With pages in all, links and sizes of pages have the means of IRLbot §7, and medians far below them."""
    web = Web(5, 3_000, pages=1_000_000)
    links, sizes = [], []
    for host in range(0, 3_000, 5):
        body = web.answer(address_of(host), path_of(Kind.PAGE, 0), PORT).body
        links.append(len(hrefs_in(body)[1]) - 1)
        sizes.append(len(body))
    assert 55 < sum(links) / len(links) < 65
    assert 17_000 < sum(sizes) / len(sizes) < 24_000
    assert sorted(links)[300] < 45
    assert sorted(sizes)[300] < 14_000
    assert max(links) > 150


def test_largest_web_costs_a_few_megabytes():
    """10^6 hosts with 10^9 pages of all kinds, at their names, are made at once, and answer without being stored."""
    tracemalloc.start()
    try:
        web = Web(3, 10**6, pages=10**9, naming=Naming.NAME, features=ALL)
        made = tracemalloc.get_traced_memory()[1]
        names = [web.name_of(host) for host in range(0, 10**6, 9_973)]
        statuses = {web.answer(name, "/", 80).status for name in names}
        answered = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 200 in statuses
    assert made < 3_000_000
    assert answered < 16_000_000
