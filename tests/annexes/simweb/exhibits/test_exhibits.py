from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import ada_url
import pytest
from selectolax.lexbor import LexborHTMLParser

from bigcrawl_simweb.basics.answer import Answer, Fault
from bigcrawl_simweb.basics.features import ALL, PLAIN, Feature
from bigcrawl_simweb.basics.resources import Kind, Resource
from bigcrawl_simweb.exhibits.table import EXHIBITS, ROWS_MAX, exhibits_of, path_of, proof_of, resource_with_path
from bigcrawl_simweb.model.web import Web
from bigcrawl_simweb.serve.http1 import retry_after_ms
from tests.annexes.simweb.decoding import entity, leads_in, text_of
from tests.support.running.tables import each

if TYPE_CHECKING:
    from bigcrawl_simweb.exhibits.exhibit import Exhibit

PORT = 8123
# Everything but what happens to whole hosts, so that each exhibit is seen as it is.
WEB = Web(3, 8, 9, features=ALL - {Feature.OUTAGES})
TIMES = range(0, 24_000, 250)
IDS = [row.slug for row in EXHIBITS]
UNDECODABLE = {"half-gzip", "not-gzip"}


def shown(row: Exhibit) -> Resource:
    """The row's first exhibit, on the host that has it."""
    number = EXHIBITS.index(row)
    return Resource(number % 8, Kind.EXHIBIT, number)


def url_of(resource: Resource | None) -> str:
    assert resource is not None
    address = f"127.16.0.{resource.host + 1}"
    return f"http://{address}:{PORT}{path_of(resource.kind, resource.number)}"


@cache
def answers_of(resource: Resource) -> list[Answer]:
    """What it answers over a while, each answer once."""
    url = url_of(resource)
    host, target = f"127.16.0.{resource.host + 1}", url[url.index("/", 7) :]
    return list({WEB.answer(host, target, PORT, at_ms=at_ms): None for at_ms in TIMES})


def test_eight_hosts_have_every_exhibit_once():
    """Rows go round: each is on every eighth host, linked to from its front page, and only with its feature."""
    rows = [exhibit.number % ROWS_MAX for host in range(8) for exhibit in exhibits_of(host, ALL)]
    assert sorted(rows) == list(range(len(EXHIBITS)))
    assert exhibits_of(5, ALL) == [exhibit._replace(host=5) for exhibit in exhibits_of(13, ALL)]
    assert exhibits_of(5, PLAIN) == []
    for host in range(8):
        links = leads_in(f"http://127.16.0.{host + 1}:{PORT}/", WEB.answer(f"127.16.0.{host + 1}", "/", PORT))
        assert {url_of(exhibit) for exhibit in exhibits_of(host, ALL)} <= links


def test_slugs_name_one_row_each():
    """A slug is a lower-case name; a table that grows too long for its numbers would fail here."""
    assert len(set(IDS)) == len(IDS) <= ROWS_MAX
    assert all(re.fullmatch(r"[a-z0-9-]*[a-z0-9]", slug) for slug in IDS)


@each("row", EXHIBITS, ids=lambda row: row.slug)
def test_row_says_what_is_answered(row: Exhibit):
    """Its statuses are those that occur, 499 is the client's; and it can be received whole when the row says so."""
    resource = shown(row)
    for place in range(row.chain):
        answers = answers_of(resource._replace(number=resource.number + place * ROWS_MAX))
        assert {answer.status for answer in answers} == row.statuses - {499}
        assert {answer.is_whole for answer in answers} == {row.is_whole}
    assert row.lesson


@each("row", [row for row in EXHIBITS if row.slug not in UNDECODABLE], ids=lambda row: row.slug)
def test_right_reader_finds_the_proof_and_nothing_else(row: Exhibit):
    """Whoever decodes, parses and resolves as the standards say is led to the proof, and to no phantom."""
    resource = shown(row)
    for place in range(row.chain):
        source = resource._replace(number=resource.number + place * ROWS_MAX)
        onward = proof_of(source)
        wanted = {url_of(onward)} if onward else set()
        answer = next(answer for answer in answers_of(source) if answer.status in row.statuses - {429, 503})
        found = leads_in(url_of(source), answer) if "bomb" not in row.slug else set()
        assert wanted <= found
        assert found - wanted <= {f"http://127.16.0.{source.host + 1}:{PORT}/", url_of(source)}


@each("row", EXHIBITS, ids=lambda row: row.slug)
def test_paths_of_exhibit_and_proof_are_canonical_and_their_own(row: Exhibit):
    """Each path leads back to its resource, on hosts that have it, with its feature."""
    resource = shown(row)
    for target in (resource, proof_of(resource)):
        if target is None:
            continue
        path = path_of(target.kind, target.number)
        assert ada_url.normalize_url(url_of(target)) == url_of(target)
        assert resource_with_path(path, resource.host, ALL) == (target.kind, target.number)
        assert resource_with_path(path, resource.host + 1, ALL) is None
        assert resource_with_path(path, resource.host, ALL - {row.feature}) is None
        assert resource_with_path(re.sub(r"-(\d+\.)", r"-0\1", path), resource.host, ALL) is None


def test_only_proofs_that_something_leads_to_exist():
    """Past a chain's end, and for rows that lead nowhere, there is nothing."""
    for target in ("/fair/long-chain-10.html", "/proof/long-chain-0.html", "/proof/gone-0.html", "/fair/gone-1.html"):
        assert all(resource_with_path(target, host, ALL) is None for host in range(8)), target


@each("row", [row for row in EXHIBITS if row.feature is Feature.MARKUP], ids=lambda row: row.slug)
def test_parsers_of_two_schools_find_the_proof(row: Exhibit):
    """An HTML5 parser finds the link that libxml2 finds."""
    resource = shown(row)
    url = url_of(resource)
    tree = LexborHTMLParser(text_of(answers_of(resource)[0]))
    base = next((node.attributes["href"] for node in tree.css("base[href]")), None)
    base_url = ada_url.join_url(url, base) if base else url
    links = [node.attributes["href"] or "" for node in tree.css("a[href], area[href]")]
    found = {ada_url.join_url(base_url, link).partition("#")[0] for link in links}
    assert url_of(proof_of(resource)) in found
    assert not any("phantom" in link for link in found)


def test_bombs_are_small_and_become_large():
    """A bomb is a body of kilobytes that becomes fifty million bytes."""
    rows = [row for row in EXHIBITS if row.slug.endswith("-bomb")]
    assert len(rows) == 3
    for row in rows:
        (answer,) = answers_of(shown(row))
        assert len(answer.body) < 100_000
        assert len(entity(answer)) == 50_000_000


def test_faults_are_of_every_kind():
    """Every way in which an answer can fail to arrive is shown somewhere."""
    faults = {answer.fault for row in EXHIBITS for answer in answers_of(shown(row))}
    assert faults == set(Fault)


@pytest.mark.parametrize("slug", ["limited", "limited-until", "unavailable-until"])
def test_who_waits_as_long_as_told_is_served(slug: str):
    """Retry-After, in seconds or as a date, ends when the refusing does: not before, and not a second after."""
    resource = shown(next(row for row in EXHIBITS if row.slug == slug))
    url = url_of(resource)
    host, target = f"127.16.0.{resource.host + 1}", url[url.index("/", 7) :]
    refused = 0
    for at_ms in range(10**12, 10**12 + 24_000, 100):
        answer = WEB.answer(host, target, PORT, at_ms=at_ms)
        if answer.status == 200:
            continue
        refused += 1
        told_ms = retry_after_ms(dict(answer.headers)["Retry-After"], at_ms)
        assert WEB.answer(host, target, PORT, at_ms=at_ms + told_ms).status == 200
        assert WEB.answer(host, target, PORT, at_ms=at_ms + told_ms - 1_100).status != 200
    assert refused == 2 * 30
