"""The whole web with everything in it, against a reader of its pages that knows nothing of how they are made."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from itertools import combinations

import ada_url
import pytest
from protego import Protego

from bigcrawl.listings.feeds import FeedEntry, feed_entries, feeds_of_page, is_feed
from bigcrawl_simweb.basics.answer import Fault
from bigcrawl_simweb.basics.features import ALL, Feature, Naming, features_named
from bigcrawl_simweb.basics.resources import Kind
from bigcrawl_simweb.exhibits.table import EXHIBITS
from bigcrawl_simweb.model.changing_pages import changed_ms_of, period_ms_of
from bigcrawl_simweb.model.expectations import OUTAGES, outage_of
from bigcrawl_simweb.model.web import Web
from bigcrawl_simweb.serve.http1 import retry_after_ms
from tests.annexes.simweb.decoding import entity, leads_in
from tests.support.known_copies import similarity

PORT = 8123
HOSTS = 35  # as many kinds of robots.txt as there are; more than a round of outages
NOFOLLOW = re.compile(r"^(meta-(nofollow|none|both|own)|header-(nofollow|none|twice|own)|rel-(nofollow|among-others))$")
NOW_MS = 1_780_000_000_000


@cache
def web_of(naming: Naming) -> Web:
    return Web(4, HOSTS, pages=HOSTS * 12, naming=naming, features=ALL)


def split(url: str) -> tuple[str, str]:
    authority, _, path = url.removeprefix("http://").partition("/")
    return authority.partition(":")[0], "/" + path


class Reader:
    """Follows what correct crawlers follow, asking as often as it takes; of HTTP it has the answers alone."""

    def __init__(self, web: Web, obey_nofollow: bool) -> None:
        self._web = web
        self._obey_nofollow = obey_nofollow
        self.answered: dict[str, set[int]] = {}

    def crawl(self) -> None:
        waiting = self._web.seeds(PORT)
        seen = set(waiting)
        while waiting:
            url = waiting.pop()
            host, target = split(url)
            resolved = self._web.address_of(host)
            if not host[-1].isdigit() and not isinstance(resolved, str):
                continue
            if self._web.is_endless(host, target) or not self._web.allows(host, target):
                continue
            fresh = self._read(url) - seen
            seen |= fresh
            waiting += fresh

    def _read(self, url: str) -> set[str]:
        host, target = split(url)
        answers = []
        # Later, outages are over.
        for wait in range(0, 31_000, 1_500):
            answers.append(self._web.answer(host, target, PORT, at_ms=NOW_MS + wait))
            if answers[-1].status not in (429, 503):
                break
        self.answered[url] = {answer.status for answer in answers}
        answer = answers[-1]
        slug = target.removeprefix("/fair/").rpartition("-")[0]
        unreadable = slug in ("half-gzip", "not-gzip") or slug.endswith("-bomb")
        if answer.fault in (Fault.RESET, Fault.SILENT) or unreadable or (self._obey_nofollow and NOFOLLOW.match(slug)):
            return set()
        return {link for link in leads_in(url, answer) if not link.startswith("ftp:")}


@pytest.mark.parametrize(
    ("naming", "obey_nofollow"),
    [
        (Naming.ADDRESS, True),
        pytest.param(Naming.BOTH, False, marks=pytest.mark.long("the same by names and addresses")),
    ],
)
def test_known_answer_is_what_a_reader_finds(naming: Naming, obey_nofollow: bool):
    """The reader meets no URL that was not expected, misses none that is required, and sees expected statuses."""
    web = web_of(naming)
    expected = web.expected(PORT, web.seeds(PORT), obey_nofollow=obey_nofollow)
    reader = Reader(web, obey_nofollow)
    reader.crawl()
    assert reader.answered.keys() <= expected.keys()
    required = {url for url, of_url in expected.items() if of_url.required}
    assert required <= reader.answered.keys()
    assert 0.5 < len(required) / len(expected) < 1
    for url, statuses in reader.answered.items():
        assert statuses <= expected[url].statuses, url
    assert {status for statuses in reader.answered.values() for status in statuses} >= {200, 301, 404, 410, 429, 503}
    assert web.expectation(next(iter(required))).required


def test_nofollow_keeps_its_proofs_out():
    """Whoever obeys nofollow does without one page for each such exhibit, and nothing else."""
    web = web_of(Naming.ADDRESS)
    obedient = web.reachable(PORT, web.seeds(PORT))
    free = web.reachable(PORT, web.seeds(PORT), obey_nofollow=False)
    left_out = {split(url)[1] for url in free.keys() - obedient.keys()}
    assert left_out == {f"/proof/{row.slug}-0.html" for row in EXHIBITS if row.nofollow}


def test_sitemaps_lead_to_what_nothing_else_does():
    """robots.txt names an index, it gzipped lists, they pages; who reads them finds these and nothing else."""
    web = web_of(Naming.ADDRESS)
    without = web.reachable(PORT, web.seeds(PORT))
    read = web.reachable(PORT, web.seeds(PORT), read_sitemaps=True).keys() - without.keys()
    found = set()
    for url in web.seeds(PORT):
        robots = web.answer(split(url)[0], "/robots.txt", PORT, at_ms=NOW_MS)
        for _ in range(5):
            if robots.status == 301:
                to = ada_url.join_url(url, dict(robots.headers)["Location"])
                robots = web.answer(*split(to), PORT, at_ms=NOW_MS)
        if robots.status != 200 or robots.fault is not Fault.NONE or url not in without:
            continue
        text = entity(robots).decode("utf-8", "replace")
        waiting = [link for link in Protego.parse(text).sitemaps if link.startswith("http")]
        while waiting:
            link = waiting.pop()
            answer = web.answer(*split(link), PORT, at_ms=NOW_MS + 40_000)
            found.add(link)
            if "sitemap" in link:
                body = gzip.decompress(answer.body) if link.endswith(".gz") else answer.body
                waiting += re.findall(r"<loc>(http[^<]*/(?:sitemap|mapped)[^<]*)</loc>", body.decode())
    calm = {link for link in read if outage_of(web.resource_at(link).host) is None}  # type: ignore[union-attr]
    assert calm <= found
    assert sum("/mapped/" in link for link in read) == 6 * sum("/sitemap.xml" in link for link in read) > 0


def test_feeds_lead_to_what_nothing_else_does():
    """Front pages name RSS and Atom, they pages and news; who reads them finds these and nothing else."""
    web = web_of(Naming.ADDRESS)
    without = web.reachable(PORT, web.seeds(PORT))
    read = web.reachable(PORT, web.seeds(PORT), read_feeds=True).keys() - without.keys()
    found = set()
    for url in web.seeds(PORT):
        if url in without and outage_of(web.resource_at(url).host) is None:  # type: ignore[union-attr]
            for feed in feeds_of_page(web.answer(*split(url), PORT, at_ms=NOW_MS).body.decode()):
                found |= {feed, *(entry.url for entry in entries_of(web, feed, NOW_MS))}
    calm = {link for link in read if outage_of(web.resource_at(link).host) is None}  # type: ignore[union-attr]
    assert calm == found - without.keys()
    assert sum("/announced/" in link for link in calm) == 3 * sum("/feeds/" in link for link in calm) > 0


def test_feeds_change_as_the_news_do():
    """The newest entry comes first, and each piece of news has the time of its latest change."""
    web = web_of(Naming.ADDRESS)
    host, latest = "127.16.0.1", set()
    for at_ms in range(NOW_MS, NOW_MS + 60_000, 1_500):
        for number, read in enumerate((parsedate_to_datetime, datetime.fromisoformat)):
            entries = entries_of(web, f"http://{host}:{PORT}/feeds/{number}/", at_ms)
            times = [read(entry.published).timestamp() * 1000 for entry in entries]
            assert times == sorted(times, reverse=True)
            assert max(times) <= at_ms
            for entry, time_ms in zip(entries, times, strict=True):
                resource = web.resource_at(entry.url)
                assert resource is not None
                if resource.kind is Kind.NEWS:
                    assert time_ms == changed_ms_of(4, resource.host, resource.number, at_ms)
            latest.add(entries[0])
    assert len(latest) > 10


def entries_of(web: Web, feed: str, at_ms: int) -> list[FeedEntry]:
    answer = web.answer(*split(feed), PORT, at_ms=at_ms)
    assert is_feed(answer.body)
    return [entry for found in feed_entries(answer.body, 1_000) for entry in found]


def test_spaces_without_end_have_no_end():
    """From each of them, however deep, a step leads to what is endless too, was not seen, and is not reachable."""
    web = web_of(Naming.NAME)
    reachable = web.reachable(PORT, web.seeds(PORT), obey_robots=False)
    starts: dict[Kind, str] = {}
    for url in reachable:
        if split(url)[1] == "/" and web.expectation(url).required:
            for link in leads_in(url, web.answer(*split(url), PORT)):
                if web.is_endless(*split(link)):
                    starts.setdefault(web.resource_at(link).kind, link)  # type: ignore[union-attr]
    assert set(starts) == {Kind.CALENDAR, Kind.SESSION, Kind.DEEPER, Kind.OFFER, Kind.MADE_UP}
    for kind, start in starts.items():
        url, seen = start, {start}
        for _ in range(50):
            answer = web.answer(*split(url), PORT)
            assert answer.status == 200
            ahead = sorted(leads_in(url, answer) - seen)
            url = next(link for link in ahead if web.is_endless(*split(link)))
            assert url not in reachable
            seen.add(url)
        assert len(seen) == 51, kind
        assert web.expectation(url).endless
        assert not web.expectation(url).required


def test_farm_pages_link_to_ever_new_subdomains():
    """A farm page has 120 links, most to other names of its farm, all of which resolve and answer."""
    web = web_of(Naming.NAME)
    name = next(
        split(link)[0]
        for seed in web.seeds(PORT)
        for link in leads_in(seed, web.answer(*split(seed), PORT))
        if "-offers" in split(link)[0]
    )
    links = leads_in(f"http://{name}:{PORT}/", web.answer(name, "/", PORT))
    assert len(links) > 110
    plds = Counter(web.pld_of(split(link)[0]) for link in links)
    assert len({split(link)[0] for link in links}) > 100
    assert plds[web.pld_of(name)] >= 0.85 * len(links)
    for link in links:
        assert isinstance(web.address_of(split(link)[0]), str)
        assert web.answer(*split(link), PORT).status == 200
    assert web.answer(name, "/robots.txt", PORT).status == 404


def test_outages_are_as_they_say():
    """A host that is down is never there; others are away for their share of the time, and say until when."""
    web = web_of(Naming.ADDRESS)
    met = set()
    for host, url in enumerate(web.seeds(PORT)):
        outage = outage_of(host)
        if outage is None:
            continue
        met.add(outage)
        name, away = split(url)[0], 0
        for at_ms in range(NOW_MS, NOW_MS + 2 * outage.every_ms, outage.every_ms // 50):
            answer = web.answer(name, "/", PORT, at_ms=at_ms)
            robots = web.answer(name, "/robots.txt", PORT, at_ms=at_ms)
            if answer.status != outage.status:
                continue
            away += 1
            assert answer.fault is outage.fault
            assert (robots.status == outage.status) >= outage.robots_too
            if outage.retry_after:
                told_ms = retry_after_ms(dict(answer.headers)["Retry-After"], at_ms)
                assert web.answer(name, "/", PORT, at_ms=at_ms + told_ms).status == 200
        assert away == pytest.approx(100 * outage.away_ms / outage.every_ms, abs=2)
        assert not (outage.is_lasting and web.allows(name, "/"))
    assert met == set(OUTAGES)


def test_copies_are_the_same_on_all_hosts_and_near_copies_nearly():
    """Copies share every byte; near copies differ in a few words, and no other page is like another."""
    web = web_of(Naming.ADDRESS)
    hosts = [split(url)[0] for host, url in enumerate(web.seeds(PORT)) if outage_of(host) is None]
    copies = [{web.answer(host, f"/copy/item-{n}.html", PORT).body for host in hosts} for n in range(4)]
    assert [len(bodies) for bodies in copies] == [1] * 4
    assert len(set.union(*copies)) == 4
    near = [web.answer(host, "/near/item-0.html", PORT).body for host in hosts]
    assert len(set(near)) == len(hosts)
    alike = [similarity(first, other) for first, other in combinations(near[:20], 2)]
    assert min(alike) >= 0.9
    assert min(alike) < 0.95 < max(alike), "some are nearer than others"
    others = [web.answer(host, "/", PORT).body for host in hosts[:20]]
    assert max(similarity(first, other) for first, other in combinations(others, 2)) < 0.5


@pytest.mark.parametrize("number", range(3))
def test_news_change_at_their_rate_and_are_told_apart(number: int):
    """A version lasts on average as long as the rate says; its validators give 304, others 200."""
    web = web_of(Naming.ADDRESS)
    target, period = f"/news/item-{number}.html", period_ms_of(number)
    versions: dict[str, bytes] = {}
    for at_ms in range(NOW_MS, NOW_MS + 40 * period, period // 10):
        answer = web.answer("127.16.0.1", target, PORT, at_ms=at_ms)
        headers = dict(answer.headers)
        assert versions.setdefault(headers["ETag"], answer.body) == answer.body
        for conditions in (
            {"If-None-Match": headers["ETag"]},
            {"If-None-Match": f'"x", {headers["ETag"]}'},
            {"If-None-Match": "*"},
            {"If-Modified-Since": headers["Last-Modified"]},
        ):
            again = web.answer("127.16.0.1", target, PORT, at_ms=at_ms, conditions=conditions)
            assert (again.status, again.body) == (304, b"")
        for conditions in (
            {"If-None-Match": '"x"', "If-Modified-Since": headers["Last-Modified"]},
            {"If-Modified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"},
            {"If-Modified-Since": "yesterday"},
        ):
            assert web.answer("127.16.0.1", target, PORT, at_ms=at_ms, conditions=conditions).status == 200
        changed_ms = changed_ms_of(4, 0, number, at_ms)
        assert at_ms - 2 * period - 1_000 <= changed_ms <= at_ms
    assert 30 <= len(versions) <= 42
    assert len(set(versions.values())) == len(versions)


def test_features_are_chosen_by_name():
    """Names add up; a feature that is left out leaves nothing behind."""
    assert features_named(["plain"]) == frozenset()
    assert features_named(["all"]) == ALL
    assert features_named(["robots", "plain", "traps"]) == {Feature.ROBOTS, Feature.TRAPS}
    web = Web(4, HOSTS, 12, features=frozenset({Feature.CHANGES}))
    kinds = {web.resource_at(url).kind for url in web.reachable(PORT, web.seeds(PORT))}  # type: ignore[union-attr]
    assert Kind.NEWS in kinds
    assert not kinds & {Kind.COPY, Kind.EXHIBIT, Kind.PROOF, Kind.MAPPED}
    assert web.answer("127.16.0.1", "/copy/item-0.html", PORT).status == 404
    assert web.answer("127.16.0.1", "/calendar/2026/01/", PORT).status == 404
