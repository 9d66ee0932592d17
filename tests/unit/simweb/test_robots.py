from __future__ import annotations

import pytest
from protego import Protego

from bigcrawl.simweb.resources import path_of
from bigcrawl.simweb.robots import ROBOTS, Robots
from bigcrawl.simweb.web import Web
from tests.unit.simweb.support import all_resources

HOSTS = len(ROBOTS)
WEB = Web(1, HOSTS, 30, agent="sparrow")


def rules(host: int) -> Protego:
    address = list(WEB.addresses())[host]
    page = WEB.page(address, "/robots.txt", 80)
    return Protego.parse(page.body.decode() if page.status == 200 else "")


@pytest.mark.parametrize("host", range(HOSTS), ids=[robots.name for robots in ROBOTS])
def test_known_answer_is_what_a_parser_of_the_file_says(host: int):
    """What the web claims to forbid its agent is what its robots.txt forbids it, resource by resource."""
    address = list(WEB.addresses())[host]
    parsed = rules(host)
    for resource in all_resources(WEB, host):
        path = path_of(resource.kind, resource.number)
        allowed = parsed.can_fetch(f"http://{address}{path}", "sparrow/1.0 (+http://example.org/)")
        assert WEB.allows(address, path) == allowed, path
    delay_s = parsed.crawl_delay("sparrow") or 0
    assert WEB.crawl_delays_ms().get(address, 0) == delay_s * 1000


def test_files_differ_in_what_they_teach():
    """Among the kinds are no file, an open one, groups of the agent's own, and Crawl-delay."""
    names = {robots.name: robots for robots in ROBOTS}
    assert names["absent"].text is None
    assert WEB.page("127.16.0.1", "/robots.txt", 80).status == 404
    assert "Disallow:\n" in (names["open"].text or "")
    others = [host for host in range(HOSTS) if not rules(host).can_fetch("http://h/", "stranger")]
    assert [ROBOTS[host].name for host in others] == ["own group", "shared group"]
    delays = [robots.crawl_delay_ms for robots in ROBOTS if robots.crawl_delay_ms]
    assert delays
    assert all(200 <= delay_ms <= 1000 for delay_ms in delays)


def test_every_restrictive_file_closes_something_that_is_there():
    """A rule that no page could break would prove nothing."""
    restrictive: list[tuple[int, Robots]] = [
        (host, robots) for host, robots in enumerate(ROBOTS) if "isallow: /" in (robots.text or "")
    ]
    assert len(restrictive) >= 5
    for host, robots in restrictive:
        assert any(robots.closes(resource) for resource in all_resources(WEB, host)), robots.name
