"""Explains a URL for people: its kind, its answer, and the right reaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.features import Feature
from bigcrawl_simweb.basics.resources import ENDLESS_KINDS, HOMES, PATHS, Kind
from bigcrawl_simweb.exhibits.table import EXHIBITS, row_of
from bigcrawl_simweb.model.expectations import OUTAGES
from bigcrawl_simweb.model.names import FARM_HOST, FARM_MARK, HOMES_HOST, HOMES_MARK
from bigcrawl_simweb.model.robots import KINDS, ROBOTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl_simweb.basics.answer import Answer
    from bigcrawl_simweb.basics.resources import Resource
    from bigcrawl_simweb.model.expectations import Expected
    from bigcrawl_simweb.model.web import Web

SPACES: Final = (
    (Feature.TRAPS, ", ".join(PATHS[kind](0) for kind in (Kind.CALENDAR, Kind.SESSION, Kind.DEEPER))),
    (Feature.FARMS, f"any name below NAME{FARM_MARK}0.biz"),
    (Feature.HOMES, f"any directory of www.NAME{HOMES_MARK}0.biz but /~user-1/ to /~user-{HOMES}/"),
)


def explain(web: Web, url: str, port: int, at_ms: int) -> Iterator[str]:
    authority, _, path = url.removeprefix("http://").partition("/")
    host, target = authority.partition(":")[0].lower(), "/" + path.partition("#")[0]
    yield f"host       {host} {_host_words(web, host)}"
    resource = web.resource_at(f"http://{host}{target}")
    yield f"resource   {_resource_words(resource, target)}"
    yield f"robots.txt {'allows it' if web.allows(host, target) else 'forbids it'}"
    yield f"answer     {_answer_words(web.answer(host, target, port, at_ms=at_ms))}"
    yield f"expected   {_expected_words(web.expectation(url))}"
    if resource is not None and resource.kind is Kind.EXHIBIT:
        row = row_of(resource)
        yield f"lesson     {row.feature}: a correct crawler {row.lesson}"


def _host_words(web: Web, host: str) -> str:
    found = web.resource_at(f"http://{host}/")
    if found is None:
        return "is not in this web"
    at = f"number {found.host}, PLD {web.pld_of(host)}"
    if web.address_of(host) is not None:
        at += f", at {web.address_of(host)}"
    if found.host >= FARM_HOST:
        return f"is on a spam farm: {at}"
    if found.host >= HOMES_HOST:
        return f"is a shared domain: {at}"
    outage = web.expectations.outage(found.host)
    robots = web.expectations.robots(found.host)
    words = f"{at}, robots.txt: {robots.name}"
    return f"{words}, outage: {outage.name}; a correct crawler {outage.lesson}" if outage else words


def _resource_words(resource: Resource | None, target: str) -> str:
    if resource is None:
        return "robots.txt" if target == "/robots.txt" else "nothing"
    if resource.kind in (Kind.EXHIBIT, Kind.PROOF):
        return f"{resource.kind} of {row_of(resource).slug}"
    endless = ", in a space without end" if resource.kind in ENDLESS_KINDS else ""
    return f"{resource.kind} {resource.number}{endless}"


def _answer_words(answer: Answer) -> str:
    length = len(answer.body) if answer.announced_bytes is None else answer.announced_bytes
    words = [f"{answer.status}, {length} bytes, framing {answer.framing.value}"]
    words += [f"{name}: {value[:80]}" for name, value in answer.headers]
    if answer.delay_ms:
        words.append(f"after {answer.delay_ms} ms")
    if answer.bytes_per_s:
        words.append(f"at {answer.bytes_per_s} bytes a second")
    if not answer.is_whole:
        words.append(f"not to be received whole ({answer.fault.value})")
    return "; ".join(words)


def _expected_words(expected: Expected) -> str:
    words = [" or ".join(map(str, sorted(expected.statuses)))]
    words.append("required if anything certain leads there" if expected.required else "not required")
    if expected.retriable:
        words.append("may be asked for again")
    return ", ".join(words)


def catalogue() -> Iterator[str]:
    for row in EXHIBITS:
        statuses = " ".join(map(str, sorted(row.statuses)))
        yield f"{row.feature:<12} /fair/{row.slug}-0.html  {statuses}: {row.lesson}"
    for feature, place in SPACES:
        yield f"{feature:<12} {place}  200, without end: a correct crawler stops by its budgets"
    for robots in ROBOTS:
        yield f"{'plain':<12} robots.txt: {robots.name}"
    for robots in KINDS:
        yield f"{Feature.ROBOTS:<12} robots.txt: {robots.name}"
    for outage in OUTAGES:
        yield f"{Feature.OUTAGES:<12} {outage.name}, {outage.status}: {outage.lesson}"
