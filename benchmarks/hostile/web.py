"""The web of the benchmark: healthy hosts that link to each other, and bad ones that only seeds lead to.

Healthy hosts are the first ones of a uniform web, so that they are the same with bad hosts and without. What a bad
host does follows from its number:

    dead        its connection attempts are not answered
    refusing    they are refused
    silent      it accepts, and never says anything
    slow        robots.txt and pages take 5 s to begin, and as long to come
    lying       robots.txt is good; pages are shorter than they say, or cut, or no gzip
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl_simweb.basics.addresses import address_of, index_of, origin_of
from bigcrawl_simweb.basics.answer import Answer, Fault
from bigcrawl_simweb.model.uniform import UniformWeb

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SLOW_MS: Final = 5_000
_HTML: Final = (("Content-Type", "text/html; charset=utf-8"),)
_NO_CONDITIONS: Final[Mapping[str, str]] = {}
_BODY: Final = b"<!DOCTYPE html><title>A page</title><p>" + b"text " * 4_000


class Kind(StrEnum):
    """What is wrong with a host."""

    DEAD = "dead"
    REFUSING = "refusing"
    SILENT = "silent"
    SLOW = "slow"
    LYING = "lying"


KINDS: Final = tuple(Kind)


class Ports(NamedTuple):
    """Where the web is: of all hosts but those that are dead or refuse, and of these."""

    http: int
    dead: int
    refusing: int


@dataclass(frozen=True, slots=True)
class WebPlan:
    """The arguments of a web.

    Attributes:
        hosts: healthy and bad ones.
        bad_percent: of the hosts.
        bad_urls: seeds of each bad host.
        latency_ms: from a request to its answer, of healthy hosts.
    """

    seed: int
    hosts: int
    bad_percent: int
    bad_urls: int
    latency_ms: int

    @property
    def bad(self) -> int:
        """How many hosts are bad; the rest comes first."""
        return self.hosts * self.bad_percent // 100

    @property
    def healthy(self) -> int:
        """How many hosts are healthy."""
        return self.hosts - self.bad

    def kind_of(self, index: int) -> Kind | None:
        """What is wrong with a host; None: nothing."""
        return None if index < self.healthy else KINDS[index % len(KINDS)]

    def as_json(self) -> str:
        """What `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> WebPlan:
        return cls(**json.loads(text))

    def seeds(self, ports: Ports, *, with_bad: bool) -> Iterator[str]:
        """The first page of each healthy host; among them, evenly, those of bad hosts."""
        share = self.bad / max(1, self.healthy)
        told = 0
        for index in range(self.healthy):
            yield f"{origin_of(address_of(index), ports.http)}/page/{index}.html"
            while with_bad and told < share * (index + 1):
                yield from self._bad_seeds(self.healthy + told, ports)
                told += 1

    def _bad_seeds(self, index: int, ports: Ports) -> Iterator[str]:
        port = {Kind.DEAD: ports.dead, Kind.REFUSING: ports.refusing}.get(self.kind_of(index) or Kind.LYING, ports.http)
        origin = origin_of(address_of(index), port)
        return (f"{origin}/item-{number}.html" for number in range(self.bad_urls))


class HostileWeb:
    """What the hosts answer that answer anything."""

    def __init__(self, plan: WebPlan) -> None:
        self._plan = plan
        self._healthy = UniformWeb(plan.seed, plan.healthy)

    @cached_property
    def _robots(self) -> Answer:
        return Answer(200, (("Content-Type", "text/plain"),), b"User-agent: *\nDisallow: /private/\n")

    def answer(
        self, host: str, target: str, port: int, *, at_ms: int = 0, conditions: Mapping[str, str] = _NO_CONDITIONS
    ) -> Answer:
        """As the module says."""
        index = index_of(host)
        match None if index is None else self._plan.kind_of(index):
            case Kind.SLOW:
                page = self._robots if target == "/robots.txt" else Answer(200, _HTML, _BODY)
                return replace(page, delay_ms=_SLOW_MS, bytes_per_s=len(page.body) * 1000 // _SLOW_MS)
            case Kind.LYING:
                return self._robots if target == "/robots.txt" else _lie(target)
            case None:
                page = self._healthy.answer(host, target, port)
                return replace(page, delay_ms=self._plan.latency_ms) if self._plan.latency_ms else page
            case _:
                return Answer(503, _HTML, fault=Fault.SILENT)

    def address_of(self, name: str) -> None:
        """Nothing: hosts have addresses alone."""


def _lie(target: str) -> Answer:
    match sum(target.encode()) % 3:
        case 0:
            return Answer(200, _HTML, _BODY, announced_bytes=2 * len(_BODY), fault=Fault.CUT, fault_at=len(_BODY))
        case 1:
            return Answer(200, _HTML, _BODY, fault=Fault.CUT, fault_at=len(_BODY) // 2)
        case _:
            return Answer(200, (*_HTML, ("Content-Encoding", "gzip")), _BODY)
