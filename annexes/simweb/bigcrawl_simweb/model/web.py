"""A web of any size of which no page is stored, and the exact set of reachable URLs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl_simweb.basics.addresses import HOSTS_MAX, origin_of
from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.features import PLAIN, Feature, Naming
from bigcrawl_simweb.basics.markup import render_notice
from bigcrawl_simweb.basics.resources import (
    ENDLESS_KINDS,
    NUMBER_MAX,
    Kind,
    Resource,
    directory_named_by,
    resource_with_path,
)
from bigcrawl_simweb.exhibits.exhibit import HTML
from bigcrawl_simweb.exhibits.table import ROWS_MAX, exhibits_of, proof_of, row_of
from bigcrawl_simweb.exhibits.table import resource_with_path as exhibit_with_path
from bigcrawl_simweb.model.answers import WebAnswers
from bigcrawl_simweb.model.expectations import Expectations, Expected, usual_status
from bigcrawl_simweb.model.graph import Graph
from bigcrawl_simweb.model.names import FARM_HOST, FARMS_MAX, HOMES_HOST, HostNames
from bigcrawl_simweb.model.population import Population
from bigcrawl_simweb.model.reachability import Reachability
from bigcrawl_simweb.model.robots import RobotsFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bigcrawl_simweb.basics.name_record import NameFault

ROBOTS_TARGET: Final = "/robots.txt"
PAGES_MAX: Final = 10**12
NAMED_HOSTS_MAX: Final = 10**8
# Noticeable, yet a crawler that waits ten times as long is not held up.
SLOW_MS: Final = 300
_NO_CONDITIONS: Final[Mapping[str, str]] = MappingProxyType({})
_CACHED_MAX: Final = 65_536
_STEP: Final = Expected(frozenset({200, 301, 404}), required=False, retriable=True)


class Web:
    """A simulated web, the same for the same arguments.

    Args:
        seed: any int; another seed gives other links, texts and sizes.
        hosts: 1 to `HOSTS_MAX`, or to `NAMED_HOSTS_MAX` if all have names.
        pages_per_host: 1 to `NUMBER_MAX`; all hosts are equal in size and popularity. Alternatively:
        pages: of all hosts together, `hosts` to `PAGES_MAX`, heavy-tailed, like the links to each domain. Other kinds
            are added, half as many or fewer.
        agent: the product token that robots.txt files name.
        slow_ms: the delay of a slow page, of which every third host has one.
        naming: whether hosts have separate addresses, names with many at one address, or half of each.
        features: phenomena besides the plain kinds.
        farms: with `Feature.FARMS` and names, the number of spam farms, up to `FARMS_MAX`; None: one per 200 PLDs. It
            does not affect links between ordinary pages.
        homes: likewise of shared domains, with `Feature.HOMES`.
        has_spam: False if no page links to farms and made-up directories.

    Parameters called `host` are a host's address or name as in URLs. Memory: some MB for any size.
    """

    def __init__(
        self,
        seed: int,
        hosts: int,
        pages_per_host: int | None = None,
        agent: str = "bigcrawl",
        slow_ms: int = SLOW_MS,
        *,
        pages: int | None = None,
        naming: Naming = Naming.ADDRESS,
        features: frozenset[Feature] = PLAIN,
        farms: int | None = None,
        homes: int | None = None,
        has_spam: bool = True,
    ) -> None:
        _check_sizes(hosts, pages_per_host, pages, naming)
        _check_domains(Feature.FARMS, farms, naming, features)
        _check_domains(Feature.HOMES, homes, naming, features)
        self.seed = seed
        self.hosts = hosts
        self.pages_per_host = pages_per_host or 0
        self.pages = pages or hosts * self.pages_per_host
        self.agent = agent
        self.naming = naming
        self.features = features
        population = Population(seed, hosts, self.pages, self.pages_per_host)
        self._names = HostNames(seed, population, naming, features, farms, homes)
        self._host_of = lru_cache(_CACHED_MAX)(self._names.host_of)
        self._robots = RobotsFiles(agent, features)
        self.expectations = Expectations(features, self._robots, self._names)
        self._graph = Graph(seed, population, features, self._names.farms, self._names.homes, has_spam=has_spam)
        self._answers = WebAnswers(seed, agent, slow_ms, hosts, self._graph, self._names, features)

    def __repr__(self) -> str:
        size = f"pages_per_host={self.pages_per_host}" if self.pages_per_host else f"pages={self.pages}"
        return f"Web(seed={self.seed}, hosts={self.hosts}, {size})"

    def addresses(self) -> Iterator[str]:
        return self._names.addresses()

    def address_of(self, name: str) -> str | NameFault | None:
        """Return a resolver's answer for a lower-case name: its host's address, a fault, or None for NXDOMAIN."""
        return self._names.resolve(name)

    def name_of(self, host: int) -> str:
        """Return the name or address of ordinary host `host`, 0 <= host < hosts."""
        return self._names.name_of(host)

    def shared_hosts(self) -> list[str]:
        """Return the hosts with home directories."""
        return [self._names.name_of(HOMES_HOST + number) for number in range(self._names.homes)]

    def pld_of(self, host: str) -> str:
        """Return the pay-level domain of a host; an address itself."""
        return self._names.pld_of(host)

    def seeds(self, port: int) -> list[str]:
        """Return the canonical URL of every host's first page."""
        return [origin_of(self._names.name_of(host), port) + "/" for host in range(self.hosts)]

    def answer(
        self, host: str, target: str, port: int, *, at_ms: int = 0, conditions: Mapping[str, str] = _NO_CONDITIONS
    ) -> Answer:
        """Return the host's answer to GET `target`: 421 for an unknown host, 404 for an unknown target.

        `target` is path and query as sent, `port` that of links in the answer, `at_ms` the time since the epoch for
        answers that change. `conditions` are the request's If-None-Match and If-Modified-Since.
        """
        index = self._host_of(host)
        if index is None or not self._names.resolves(index):
            return Answer(421, HTML, render_notice(421))
        outage = self.expectations.outage(index)
        is_robots = target == ROBOTS_TARGET
        if outage is not None and (outage.robots_too or not is_robots):
            left_ms = outage.left_ms(index, at_ms)
            if left_ms:
                return outage.answer(left_ms, at_ms)
        if is_robots or target.startswith("/robots/kind-"):
            return self._robots_answer(index, host, target, port)
        resource = self._resource_at(index, target)
        if resource is None:
            return Answer(404, HTML, render_notice(404))
        return self._answers.answer(resource, port, at_ms, conditions)

    def allows(self, host: str, target: str) -> bool:
        """Whether the host's robots.txt allows the agent to fetch the target; true outside of the web."""
        resource = self._requested_resource(host, target)
        return resource is None or not self.expectations.closes(resource)

    def crawl_delays_ms(self) -> dict[str, int]:
        delays = ((host, self._robots.of(host).crawl_delay_ms) for host in range(self.hosts))
        return {self._names.name_of(host): delay_ms for host, delay_ms in delays if delay_ms}

    def is_endless(self, host: str, target: str) -> bool:
        resource = self._requested_resource(host, target)
        return resource is not None and resource.kind in ENDLESS_KINDS

    def leads_to(self, url: str, port: int) -> list[str]:
        """Return the canonical URLs that a URL's resource links or redirects to, with repetitions."""
        resource = self.resource_at(url)
        if resource is None:
            return []
        followed = Reachability(
            self._graph,
            self.expectations,
            obey_robots=False,
            obey_nofollow=False,
            read_sitemaps=False,
            read_feeds=False,
        )
        return [self._answers.url(target, port) for target in followed.leads_to(resource)]

    def expectation(self, url: str) -> Expected:
        """Return the correct result at a URL; outside of the web, a 404 that is not required."""
        resource = self.resource_at(url)
        if resource is None:
            return Expected(frozenset({404}), required=False)
        return self.expectations.of(resource).expected

    def reachable(
        self,
        port: int,
        seeds: Iterable[str],
        obey_robots: bool = True,
        obey_nofollow: bool = True,
        read_sitemaps: bool = False,
        read_feeds: bool = False,
    ) -> dict[str, int]:
        """Return every canonical URL to which links and redirects lead from the seeds, with its usual status."""
        linked = self._linked_urls(port, seeds, (obey_robots, obey_nofollow, read_sitemaps, read_feeds))
        return {url: usual_status(expected) for url, expected in linked.items()}

    def expected(
        self,
        port: int,
        seeds: Iterable[str],
        obey_robots: bool = True,
        obey_nofollow: bool = True,
        read_sitemaps: bool = False,
        read_feeds: bool = False,
    ) -> dict[str, Expected]:
        """Return the correct result for every URL that a crawler may fetch, starting from the seeds.

        Links are those of the generator, not parsed from HTML. Redirect targets of robots.txt are included as not
        required, unlike in `reachable`. Excluded are robots.txt itself, infinite spaces, hosts whose name does not
        resolve, and, with `obey_robots` or `obey_nofollow`, forbidden URLs and those reachable only through them.

        Raises:
            ConfigError: a seed is not a canonical URL of this web.
        """
        linked = self._linked_urls(port, seeds, (obey_robots, obey_nofollow, read_sitemaps, read_feeds))
        return linked | self._robots_steps(port) if obey_robots else linked

    def _linked_urls(
        self, port: int, seeds: Iterable[str], choices: tuple[bool, bool, bool, bool]
    ) -> dict[str, Expected]:
        starts = [self._seed_resource(url, port) for url in seeds]
        found = Reachability(self._graph, self.expectations, *choices).expected(starts)
        return {self._answers.url(resource, port): expected for resource, expected in found.items()}

    def _robots_steps(self, port: int) -> dict[str, Expected]:
        steps: dict[str, Expected] = {}
        for index in range(self.hosts):
            at = self._next_reachable_host(index) if self._robots.of(index).elsewhere else index
            origin = origin_of(self._names.name_of(at), port)
            outage = self.expectations.outage(at)
            step = _STEP if outage is None else replace(_STEP, statuses=_STEP.statuses | {outage.status})
            steps |= {origin + target: step for target in self._robots.steps(index)}
        return steps

    def _next_reachable_host(self, index: int) -> int:
        """Return the next host that is always reachable, or the host itself if there is none."""
        others = ((index + step) % self.hosts for step in range(1, self.hosts))
        return next((other for other in others if self.expectations.is_calm(other)), index)

    def _robots_answer(self, index: int, host: str, target: str, port: int) -> Answer:
        step = None if target == ROBOTS_TARGET else self._robots.step_of(target)
        if index >= HOMES_HOST or (step is None and target != ROBOTS_TARGET):
            return Answer(404, HTML, render_notice(404))
        near = origin_of(self._names.name_of(self._next_reachable_host(index)), port)
        return self._robots.answer(index, step, origin_of(host, port), near)

    def resources(self, host: int) -> Iterator[Resource]:
        """Yield all resources of ordinary host `host`, except infinite spaces."""
        for kind in Kind:
            if kind not in ENDLESS_KINDS:
                yield from (Resource(host, kind, number) for number in range(self._graph.count(kind, host)))
        for exhibit in exhibits_of(host, self.features):
            for place in range(row_of(exhibit).chain):
                yield exhibit._replace(number=exhibit.number + place * ROWS_MAX)
                proof = proof_of(exhibit._replace(number=exhibit.number + place * ROWS_MAX))
                if proof is not None and proof.kind is Kind.PROOF:
                    yield proof

    def resource_at(self, url: str) -> Resource | None:
        """Return the resource at a canonical URL, ignoring its port; None if there is none, or for a robots.txt."""
        authority, slash, path = url.removeprefix("http://").partition("/")
        return self._requested_resource(authority.partition(":")[0], slash + path)

    def _requested_resource(self, host: str, target: str) -> Resource | None:
        index = self._host_of(host)
        return None if index is None else self._resource_at(index, target)

    def _resource_at(self, host: int, target: str) -> Resource | None:
        if FARM_HOST > host >= HOMES_HOST:
            named = directory_named_by(target)
            return Resource(host, *named) if named else None
        named = resource_with_path(target)
        if host >= FARM_HOST:
            if target == "/":
                return Resource(host, Kind.OFFER, 0)
            return Resource(host, *named) if named and named[0] is Kind.OFFER else None
        if named is None:
            named = exhibit_with_path(target, host, self.features) if self.features else None
            return Resource(host, *named) if named else None
        kind, number = named
        count = self._graph.count(kind, host)
        if kind in ENDLESS_KINDS:
            return Resource(host, kind, number) if count else None
        return Resource(host, kind, number) if number < count else None

    def _seed_resource(self, url: str, port: int) -> Resource:
        resource = self.resource_at(url)
        if resource is None or self._answers.url(resource, port) != url:
            raise ConfigError(f"{url} is not a canonical URL of {self!r} on port {port}")
        return resource


def _check_sizes(hosts: int, pages_per_host: int | None, pages: int | None, naming: Naming) -> None:
    hosts_max = NAMED_HOSTS_MAX if naming is Naming.NAME else HOSTS_MAX
    if not 1 <= hosts <= hosts_max:
        raise ConfigError(f"hosts is {hosts}; must be between 1 and {hosts_max}")
    if (pages_per_host is None) == (pages is None):
        raise ConfigError("give either pages or pages per host")
    if pages_per_host is not None and not 1 <= pages_per_host <= NUMBER_MAX:
        raise ConfigError(f"pages per host is {pages_per_host}; must be between 1 and {NUMBER_MAX}")
    if pages is not None and not hosts <= pages <= PAGES_MAX:
        raise ConfigError(f"pages is {pages}; must be between hosts, {hosts}, and {PAGES_MAX}")
    if pages is not None and Population(0, hosts, pages).largest_size() > NUMBER_MAX:
        raise ConfigError(f"pages is {pages}; with {hosts} hosts the largest host would have more than {NUMBER_MAX}")


def _check_domains(feature: Feature, count: int | None, naming: Naming, features: frozenset[Feature]) -> None:
    if count is None:
        return
    if feature not in features or naming is Naming.ADDRESS:
        raise ConfigError(f"{feature} is {count}, but {feature} need the feature {feature} and hosts with names")
    if not 1 <= count <= FARMS_MAX:
        raise ConfigError(f"{feature} is {count}; must be between 1 and {FARMS_MAX}")
