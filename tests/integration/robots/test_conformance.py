"""RFC 9309, section by section: real crawls of real servers, held to what the servers were asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.robots.cases import CASES, Case, moved
from tests.integration.robots.origin import Answer, Origin
from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below
from tests.support.running.tables import each

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.integration.robots.origin import Host

RUN_S = 600  # 25 on a machine that is not busy; the first test, for which the crawl is made, may take 900
FORBIDS = Answer(200, b"User-agent: *\nDisallow: /no\n")
SETTINGS: dict[str, Any] = {
    "USER_AGENT": "Mozilla/5.0 (compatible; ExampleBot/0.1; +https://www.example.com/bot.html)",
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 16,
    "BIGCRAWL_ROBOTS_KEPT_MIN": 1,
    "RETRY_ENABLED": False,
    "BIGCRAWL_BACKOFF": 0.2,
    "BIGCRAWL_BACKOFF_MAX": 1,
}


@dataclass(frozen=True)
class Crawled:
    """The hosts of all cases, when the crawl is over, and the places where robots.txt was told apart or kept."""

    of_case: dict[Case, Host]
    places: dict[str, Host]
    log: str


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """One crawl of all cases, a host each."""
    work = tmp_path_factory.mktemp("robots")
    with no_strays_below(work), Origin(work) as origin:
        of_case = {case: origin.listen(number) for number, case in enumerate(CASES)}
        for case, host in of_case.items():
            host.answers = case.answers_of_host()
        places = add_places(origin, len(CASES))
        seeds = [host.origin + path for case, host in of_case.items() for path in (*case.allowed, *case.forbidden)]
        seeds += [host.origin + path for name, host in places.items() for path in PATHS.get(name, ("/ok", "/no"))]
        with Crawl(work / "crawl", seeds, SETTINGS) as crawl:
            assert crawl.run(RUN_S) == 0
            yield Crawled(of_case, places, crawl.log.read_text())


# What is asked for at a place, where it is not /ok and /no.
REST_S = 60  # of a file that is out of reach
SECOND_TO_LIVE = 0.95  # of the server's clock; the crawl's own may run a little faster
AGED = tuple(f"/ok{number}" for number in range(5))
PATHS: dict[str, tuple[str, ...]] = {
    "elsewhere": (),
    "farther": (),
    "closed": ("/ok",),
    "short-lived": (*AGED, "/no"),
    "long-lived": (*AGED, "/no"),
    "failing later": (*AGED, "/no1", "/no2", "/no3"),
    "gone later": (*AGED,),
}


def add_places(origin: Origin, number: int) -> dict[str, Host]:
    """Hosts that depend on each other, or on time."""
    names = ("port a", "port b", "scheme a", "elsewhere", "farther", "closed", "led away", "led on", "led to closed")
    hosts = {name: origin.listen(number + place) for place, name in enumerate(names)}
    hosts["port b"] = origin.listen(number)  # two ports of one address
    hosts["scheme b"] = origin.listen(number + 2, "https")
    elsewhere, farther, closed = (hosts[name].origin for name in ("elsewhere", "farther", "closed"))
    hosts["port a"].answers = hosts["scheme a"].answers = {"/robots.txt": (Answer(200, b"User-agent: *\nAllow: /"),)}
    hosts["port b"].answers = hosts["scheme b"].answers = {"/robots.txt": (FORBIDS,)}
    hosts["elsewhere"].answers = {"/rules": (FORBIDS,), "/on": (moved(farther + "/rules"),)}
    hosts["farther"].answers = {"/rules": (FORBIDS,)}
    hosts["closed"].answers = {"/robots.txt": (Answer(200, b"User-agent: *\nDisallow: /"),), "/rules": (FORBIDS,)}
    hosts["led away"].answers = {"/robots.txt": (moved(elsewhere + "/rules"),)}
    hosts["led on"].answers = {"/robots.txt": (moved("/x"),), "/x": (moved(elsewhere + "/on", 302),)}
    hosts["led to closed"].answers = {"/robots.txt": (moved(closed + "/rules"),)}
    slow = b"User-agent: *\nCrawl-delay: 0.7\nDisallow: /no\n"
    for place, (name, kept, later) in enumerate(
        (
            ("short-lived", "max-age=1", ()),
            ("long-lived", "max-age=3600", ()),
            ("failing later", "max-age=1", (Answer(503, b"User-agent: *\nAllow: /"),)),
            ("gone later", "max-age=1", (Answer(404, b""),)),
        )
    ):
        hosts[name] = origin.listen(number + len(names) + place)
        first = Answer(200, slow, (("Cache-Control", kept),))
        hosts[name].answers = {"/robots.txt": (first, *later)}
    return hosts


def test_there_are_as_many_cases_as_were_asked_for() -> None:
    """A hundred at least, each told once, and of every section that asks something of a crawler."""
    assert len(CASES) >= 100
    assert len({(case.section, case.rule) for case in CASES}) == len(CASES)
    sections = {case.section for case in CASES}
    assert {"2.1", "2.2", "2.2.1", "2.2.2", "2.2.3", "2.2.4", "2.3", "2.5", "5.1", "5.2"} <= sections
    assert {f"2.3.1.{number}" for number in range(1, 6)} <= sections


@each("case", CASES, ids=lambda case: f"{case.section} {case.rule}")
def test_only_what_is_allowed_is_fetched(crawled: Crawled, case: Case) -> None:
    """By the server's own log: every allowed page once, no other, and robots.txt before all."""
    asked = crawled.of_case[case].asked
    helpers = set(case.answers)
    assert asked[0] == "/robots.txt"
    assert sorted(target for target in asked if target not in helpers | {"/robots.txt"}) == sorted(case.allowed)


def test_what_is_not_fetched_is_counted_with_its_reason(crawled: Crawled) -> None:
    """Dropped is what was forbidden; what robots.txt was out of reach for is kept: so many each, nothing else."""
    closed = [case for case in CASES if case.section == "2.3.1.4"]
    kept = sum(len(case.forbidden) for case in closed)
    forbidden = sum(len(case.forbidden) for case in CASES) - kept
    in_places = sum(path.startswith("/no") for name in crawled.places for path in PATHS.get(name, ("/no",)))
    in_places -= 2  # of the open port and the open scheme
    forbidden += in_places + 1  # and what is asked of the closed host
    assert told(crawled.log, "forbidden") == forbidden
    assert told(crawled.log, "not fetched") == forbidden
    assert (
        f"finished; {kept} URLs are withheld: no budget lets them go, or their host is one of the {len(closed)} retired"
        in crawled.log
    )


def test_unreachable_file_is_asked_for_again(crawled: Crawled) -> None:
    """§2.3.1.4: it may come back, and is tried with back-off before the host is given up."""
    closed = [crawled.of_case[case] for case in CASES if case.section == "2.3.1.4" and not case.allowed]
    assert {target for host in closed for target in host.asked} == {"/robots.txt"}
    assert min(len(host.asked) for host in closed) >= 5


@pytest.mark.parametrize("name", ["port", "scheme"])
def test_rules_are_those_of_scheme_and_port(crawled: Crawled, name: str) -> None:
    """§2.3: robots.txt is of an authority; another port, or scheme, of the same host has its own."""
    assert set(crawled.places[f"{name} a"].asked) == {"/robots.txt", "/ok", "/no"}
    assert set(crawled.places[f"{name} b"].asked) == {"/robots.txt", "/ok"}


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("led away", ["/robots.txt", "/ok"]),
        ("led on", ["/robots.txt", "/x", "/ok"]),
        ("led to closed", ["/robots.txt", "/ok"]),
    ],
)
def test_redirects_lead_to_other_hosts_and_hold_for_the_first(crawled: Crawled, name: str, asked: list[str]) -> None:
    """§2.3.1.2: followed across authorities, the rules are those of the authority that was asked."""
    assert crawled.places[name].asked == asked


def test_hosts_that_lend_a_file_keep_their_own_rules(crawled: Crawled) -> None:
    """The host that was led to is asked for that file only; its own rules close the rest of it."""
    assert set(crawled.places["elsewhere"].asked) == {"/rules", "/on"}
    assert crawled.places["farther"].asked == ["/rules"]
    assert set(crawled.places["closed"].asked) == {"/rules", "/robots.txt"}


def told(log: str, what: str) -> int:
    """A number of the summary."""
    found = re.search(rf"^ *{what} +([\d,]+)", log, re.MULTILINE)
    assert found is not None, what
    return int(found[1].replace(",", ""))


def pages(asked: Sequence[str]) -> list[str]:
    return sorted(target for target in asked if target != "/robots.txt")


def test_cache_control_says_when_to_ask_again(crawled: Crawled) -> None:
    """§2.4: a file with a second to live is asked for again after it, one with an hour is not; both are obeyed."""
    # Where the machine stands still for a second, a file is too old again before its page is fetched.
    times = crawled.places["short-lived"].times_of("/robots.txt")
    assert len(times) >= 2
    assert min(after - before for before, after in pairwise(times)) > SECOND_TO_LIVE
    assert len(crawled.places["long-lived"].times_of("/robots.txt")) == 1
    for name in ("short-lived", "long-lived"):
        assert pages(crawled.places[name].asked) == list(AGED)


def test_last_good_copy_holds_while_the_server_errs(crawled: Crawled) -> None:
    """§2.4: what was read once is used while the file is out of reach: pages are fetched, closed ones are not."""
    host = crawled.places["failing later"]
    times = host.times_of("/robots.txt")
    assert len(times) >= 2
    assert all(after - before > REST_S - 1 for before, after in pairwise(times[1:])), "it rests for a minute"
    assert pages(host.asked) == list(AGED)


def test_file_that_is_gone_allows_what_it_forbade(crawled: Crawled) -> None:
    """§2.3.1.3: a 4xx is an answer: it replaces the copy."""
    assert pages(crawled.places["gone later"].asked) == list(AGED)
    assert crawled.places["gone later"].asked.count("/robots.txt") >= 2


def test_nothing_in_any_file_breaks_the_crawl(crawled: Crawled) -> None:
    """§2.3.1.5: no file is so broken that the crawler is."""
    assert "Traceback" not in crawled.log
    assert "] ERROR: " not in crawled.log
