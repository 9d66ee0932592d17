"""The web of the benchmark: the same with farms and without, and every answer as slow as the next."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from bigcrawl_simweb.basics.features import Feature, Naming
from bigcrawl_simweb.model.web import Web

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl_simweb.basics.answer import Answer
    from bigcrawl_simweb.basics.name_record import NameFault

NO_PORT: Final = 80
"""URLs leave it out: how they are compared here, whatever port a web is served on."""

_NO_CONDITIONS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class WebPlan:
    """The arguments of a web.

    Attributes:
        hosts, pages: of the legitimate part, heavy-tailed.
        farms: pay-level domains of spam; 0: none.
        latency_ms: from a request to its answer, at least.
        seeds: how many of the hosts' first pages the crawl starts with.
        homes: shared domains with home directories, and with made-up ones if there are farms; 0: none.
    """

    seed: int
    hosts: int
    pages: int
    farms: int
    latency_ms: int
    seeds: int
    homes: int = 0

    def web(self) -> Web:
        """The web itself."""
        counts = {Feature.FARMS: self.farms, Feature.HOMES: self.homes}
        return Web(
            self.seed,
            self.hosts,
            pages=self.pages,
            naming=Naming.NAME,
            features=frozenset(feature for feature, count in counts.items() if count),
            farms=self.farms or None,
            homes=self.homes or None,
            has_spam=self.farms > 0,
        )

    def seeds_of(self, web: Web, port: int) -> list[str]:
        """First pages of hosts from all over the web; all of them legitimate."""
        return web.seeds(port)[:: max(1, self.hosts // self.seeds)][: self.seeds]

    def reachable(self) -> frozenset[str]:
        """Every legitimate URL that the seeds lead to, without the port; cost: a second for 2,000 URLs."""
        web = self.web()
        return frozenset(web.reachable(NO_PORT, self.seeds_of(web, NO_PORT)))

    def as_json(self) -> str:
        """What `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> WebPlan:
        return cls(**json.loads(text))


class SlowWeb:
    """A web, answering no sooner than `latency_ms` after a request."""

    def __init__(self, web: Web, latency_ms: int) -> None:
        self._web = web
        self._latency_ms = latency_ms

    def answer(
        self, host: str, target: str, port: int, *, at_ms: int = 0, conditions: Mapping[str, str] = _NO_CONDITIONS
    ) -> Answer:
        """As the web's, later."""
        found = self._web.answer(host, target, port, at_ms=at_ms, conditions=conditions)
        return replace(found, delay_ms=max(found.delay_ms, self._latency_ms))

    def address_of(self, name: str) -> str | NameFault | None:
        """As the web's."""
        return self._web.address_of(name)
