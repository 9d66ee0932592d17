from __future__ import annotations

import ada_url
import pytest
from protego import Protego

from bigcrawl_simweb.basics.addresses import address_of
from bigcrawl_simweb.basics.answer import Answer, Fault
from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.basics.resources import Kind, Resource
from bigcrawl_simweb.exhibits.table import path_of
from bigcrawl_simweb.model.robots import KINDS, ROBOTS, RobotsFile
from bigcrawl_simweb.model.web import Web
from tests.annexes.simweb.decoding import entity

HOSTS = len(ROBOTS)
WEB = Web(1, HOSTS, 30, agent="sparrow")


def rules(host: int) -> Protego:
    address = list(WEB.addresses())[host]
    page = WEB.answer(address, "/robots.txt", 80)
    return Protego.parse(page.body.decode() if page.status == 200 else "")


@pytest.mark.parametrize("host", range(HOSTS), ids=[robots.name for robots in ROBOTS])
def test_known_answer_is_what_a_parser_of_the_file_says(host: int):
    """What the web claims to forbid its agent is what its robots.txt forbids it, resource by resource."""
    address = list(WEB.addresses())[host]
    parsed = rules(host)
    for resource in WEB.resources(host):
        path = path_of(resource.kind, resource.number)
        allowed = parsed.can_fetch(f"http://{address}{path}", "sparrow/1.0 (+http://example.org/)")
        assert WEB.allows(address, path) == allowed, path
    delay_s = parsed.crawl_delay("sparrow") or 0
    assert WEB.crawl_delays_ms().get(address, 0) == delay_s * 1000


def test_files_differ_in_what_they_teach():
    """Among the kinds are no file, an open one, groups of the agent's own, and Crawl-delay."""
    names = {robots.name: robots for robots in ROBOTS}
    assert names["absent"].text is None
    assert WEB.answer("127.16.0.1", "/robots.txt", 80).status == 404
    assert "Disallow:\n" in (names["open"].text or "")
    others = [host for host in range(HOSTS) if not rules(host).can_fetch("http://h/", "stranger")]
    assert [ROBOTS[host].name for host in others] == ["own group", "shared group"]
    delays = [robots.crawl_delay_ms for robots in ROBOTS if robots.crawl_delay_ms]
    assert delays
    assert all(200 <= delay_ms <= 1000 for delay_ms in delays)


def test_every_restrictive_file_closes_something_that_is_there():
    """A rule that no page could break would prove nothing."""
    restrictive: list[tuple[int, RobotsFile]] = [
        (host, robots) for host, robots in enumerate(ROBOTS) if "isallow: /" in (robots.text or "")
    ]
    assert len(restrictive) >= 5
    for host, robots in restrictive:
        assert any(robots.closes(resource) for resource in WEB.resources(host)), robots.name


ALL_KINDS = Web(1, len(ROBOTS) + len(KINDS), 30, agent="sparrow", features=frozenset({Feature.ROBOTS}))


def fetched(host: int) -> Answer:
    """The last answer that a reader of a host's robots.txt gets, which follows redirects to other hosts too."""
    url = f"http://{address_of(host)}/robots.txt"
    for _ in range(12):
        name, _, path = url.removeprefix("http://").partition("/")
        answer = ALL_KINDS.answer(name, "/" + path, 80)
        if answer.status != 301:
            return answer
        url = ada_url.join_url(url, dict(answer.headers)["Location"])
    return Answer(404)


@pytest.mark.parametrize("host", range(ALL_KINDS.hosts), ids=[row.name for row in ROBOTS + KINDS])
def test_every_kind_forbids_what_its_standard_says(host: int):
    """A reader by RFC 9309: any 4xx opens everything, 5xx and silence close it, else a real parser of the file."""
    answer = fetched(host)
    if answer.status >= 500:
        closed = True
    else:
        closed = None
        text = entity(answer).decode("utf-8", "replace").removeprefix("\ufeff") if answer.status == 200 else ""
        # The parser takes lines that end in LF; the standard has CR as well.
        parsed = Protego.parse(text.replace("\r\n", "\n").replace("\r", "\n"))
    for resource in ALL_KINDS.resources(host):
        path = path_of(resource.kind, resource.number)
        allowed = not closed if closed is not None else parsed.can_fetch(f"http://h{path}", "sparrow/1.0")
        assert ALL_KINDS.allows(address_of(host), path) == allowed, path


def test_kinds_are_as_hard_to_get_as_they_say():
    """There are redirects of every length up to eight, one without end, one to another host; and faults, and a wait."""
    hops = []
    for host in range(ALL_KINDS.hosts):
        url, count = f"http://{address_of(host)}/robots.txt", 0
        while count < 20:
            name, _, path = url.removeprefix("http://").partition("/")
            answer = ALL_KINDS.answer(name, "/" + path, 80)
            if answer.status != 301:
                break
            url, count = ada_url.join_url(url, dict(answer.headers)["Location"]), count + 1
        hops.append(count)
        if ALL_KINDS.expectations.robots(host).name == "elsewhere":
            assert f"http://{address_of(host)}/" not in url
    assert {0, 1, 2, 5, 8, 20} == set(hops)
    # Twelve different ones, so that nobody who follows fewer asks for one of them twice.
    assert len(ALL_KINDS.expected(80, []).keys()) == 1 + 5 + 2 + 1 + 8 + 12
    answers = [fetched(host) for host in range(ALL_KINDS.hosts)]
    assert {Fault.SILENT, Fault.RESET} <= {answer.fault for answer in answers}
    assert any(answer.delay_ms for answer in answers)
    huge = max(answers, key=lambda answer: len(answer.body)).body
    assert huge.index(b"/archive/") < 500 * 1024 < len(huge)


@pytest.mark.parametrize(
    "target", ["/robots/kind-0-0.txt", "/robots/kind-99-0.txt", "/robots/kind-16-01.txt", "/robots/kind-16-1.txt"]
)
def test_other_paths_of_robots_are_not_there(target: str):
    """Only what robots.txt redirects to is there beside it."""
    assert ALL_KINDS.answer(address_of(0), target, 80).status == 404


def test_sitemap_is_named_where_the_file_has_room_for_it():
    """With sitemaps, a well-formed robots.txt names the host's index, and stays what it was."""
    web = Web(1, len(ROBOTS), 30, agent="sparrow", features=frozenset({Feature.SITEMAPS}))
    for host, robots in enumerate(ROBOTS):
        body = web.answer(address_of(host), "/robots.txt", 80).body
        if robots.text is not None:
            assert body.endswith(f"\nSitemap: http://{address_of(host)}/sitemap.xml\n".encode())
            assert Protego.parse(body.decode()).can_fetch("http://h/private/item-1.html", "sparrow") == (
                not robots.closes(Resource(host, Kind.PRIVATE, 1))
            )
