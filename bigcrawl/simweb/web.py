"""A web of any size of which no page is stored, and the exact answer to what can be reached in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.simweb.addresses import HOSTS_MAX, address_of, index_of, origin_of
from bigcrawl.simweb.graph import Graph, is_frameset
from bigcrawl.simweb.markup import paragraph_pool, render_frameset, render_notice, render_page, render_text
from bigcrawl.simweb.resources import PAGES_PER_TOPIC, Kind, Resource, named_by, path_of
from bigcrawl.simweb.robots import robots_of
from bigcrawl.simweb.spelling import Place, relative_path, spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from random import Random

ROBOTS_TARGET: Final = "/robots.txt"
# The paths' numbers have up to nine digits.
PAGES_MAX: Final = 10**9 - 1

_BASE_SHARE: Final = 0.15
# Long enough to be seen, short enough that a crawler which waits ten times as long is not held up.
SLOW_MS: Final = 300
_SLOW_HOSTS_EVERY: Final = 3

_HTML: Final = ("Content-Type", "text/html; charset=utf-8")
_PLAIN: Final = ("Content-Type", "text/plain; charset=utf-8")
_CSS: Final = ("Content-Type", "text/css")


@dataclass(frozen=True, slots=True)
class Page:
    """An answer: `headers` without Content-Length and the like, `delay_ms` what passes before it is sent."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    delay_ms: int = 0


class Web:
    """A simulated web on loopback addresses, the same for the same arguments.

    Args:
        seed: any int; another seed gives other links, texts and sizes.
        hosts: 1 to `HOSTS_MAX`; host i has the address `address_of(i)`.
        pages_per_host: 1 to `PAGES_MAX`; other kinds come on top, half as many or less.
        agent: the product token that robots.txt files name.
        slow_ms: how long a slow page, on every third host, lets its reader wait.

    Cost: 64 paragraphs of memory; a page takes some hundred microseconds, `reachable` visits everything.
    """

    def __init__(
        self, seed: int, hosts: int, pages_per_host: int, agent: str = "bigcrawl", slow_ms: int = SLOW_MS
    ) -> None:
        if not 1 <= hosts <= HOSTS_MAX:
            raise ConfigError(f"hosts is {hosts}; must be between 1 and {HOSTS_MAX}")
        if not 1 <= pages_per_host <= PAGES_MAX:
            raise ConfigError(f"pages per host is {pages_per_host}; must be between 1 and {PAGES_MAX}")
        self.seed = seed
        self.hosts = hosts
        self.pages_per_host = pages_per_host
        self.agent = agent
        self._slow_ms = slow_ms
        self._graph = Graph(seed, hosts, pages_per_host)
        self._pool = paragraph_pool(seed)

    def __repr__(self) -> str:
        return f"Web(seed={self.seed}, hosts={self.hosts}, pages_per_host={self.pages_per_host})"

    def addresses(self) -> Iterator[str]:
        """The address of every host."""
        return map(address_of, range(self.hosts))

    def seeds(self, port: int) -> list[str]:
        """The canonical URL of every host's first page."""
        return [origin_of(address, port) + "/" for address in self.addresses()]

    def page(self, host: str, target: str, port: int) -> Page:
        """What the host at address `host` answers to GET `target`; links in it carry `port`.

        An address outside the web answers 421, a target that is nothing's 404.
        """
        index = self._host(host)
        if index is None:
            return Page(421, (_HTML,), render_notice(421))
        if target == ROBOTS_TARGET:
            return self._robots_page(index)
        resource = self._resource(index, target)
        return Page(404, (_HTML,), render_notice(404)) if resource is None else self._answer(resource, port)

    def allows(self, host: str, target: str) -> bool:
        """Whether the host's robots.txt lets the agent fetch the target.

        True too for what is not in the web: there is no rule to ask about a link that nobody made.
        """
        index = self._host(host)
        resource = None if index is None else self._resource(index, target)
        return resource is None or not robots_of(resource.host).closes(resource)

    def crawl_delays_ms(self) -> dict[str, int]:
        """The Crawl-delay of every host that asks the agent for one, by address."""
        delays = ((address_of(host), robots_of(host).crawl_delay_ms) for host in range(self.hosts))
        return {address: delay_ms for address, delay_ms in delays if delay_ms}

    def reachable(self, port: int, seeds: Iterable[str], obey_robots: bool = True) -> dict[str, int]:
        """Every canonical URL that links and redirects lead to from the seeds, with its status.

        The links are those the generator made, not read from any HTML. robots.txt files are not among them,
        nor, with `obey_robots`, what robots.txt forbids and what only that leads to.

        Raises:
            ConfigError: a seed is not a canonical URL of this web.
        """
        waiting = [self._seeded(url, port) for url in seeds]
        seen = set(waiting)
        statuses: dict[str, int] = {}
        while waiting:
            resource = waiting.pop()
            if obey_robots and robots_of(resource.host).closes(resource):
                continue
            statuses[self._url(resource, port)] = _status(resource)
            fresh = set(self._leads_to(resource)) - seen
            seen |= fresh
            waiting += fresh
        return statuses

    def _leads_to(self, resource: Resource) -> list[Resource]:
        if resource.kind in (Kind.HOP, Kind.LOOP):
            return [self._graph.redirect(resource)]
        return self._graph.links(resource)

    def _host(self, address: str) -> int | None:
        index = index_of(address)
        return index if index is not None and index < self.hosts else None

    def _resource(self, host: int, target: str) -> Resource | None:
        named = named_by(target)
        if named is None or named[1] >= self._graph.count(named[0], host):
            return None
        return Resource(host, *named)

    def _seeded(self, url: str, port: int) -> Resource:
        address, slash, path = url.removeprefix("http://").partition("/")
        host = self._host(address.partition(":")[0])
        target = slash + path
        resource = None if host is None else self._resource(host, target)
        if resource is None or self._url(resource, port) != url:
            raise ConfigError(f"{url} is not a canonical URL of {self!r} on port {port}")
        return resource

    def _url(self, resource: Resource, port: int) -> str:
        return origin_of(address_of(resource.host), port) + path_of(resource.kind, resource.number)

    def _answer(self, resource: Resource, port: int) -> Page:
        status = _status(resource)
        match resource.kind:
            case Kind.PAGE | Kind.PRIVATE | Kind.HIDDEN:
                return Page(status, (_HTML,), self._html(resource, port), self._delay_ms(resource))
            case Kind.TEXT:
                return Page(status, (_PLAIN,), render_text(self._graph.rng("text", resource), self._pool))
            case Kind.ASSET:
                return Page(status, (_CSS,), b"body { margin: 2em }\n")
            case Kind.HOP | Kind.LOOP:
                location = self._location(resource, port)
                return Page(status, (_HTML, ("Location", location)), render_notice(status, location))
            case Kind.MISSING | Kind.FAILING:
                retry_after = (("Retry-After", "1"),) if status == 503 else ()
                return Page(status, (_HTML, *retry_after), render_notice(status))

    def _delay_ms(self, resource: Resource) -> int:
        slow = resource.kind is Kind.PAGE and resource.number == 3 and resource.host % _SLOW_HOSTS_EVERY == 0
        return self._slow_ms if slow else 0

    def _robots_page(self, host: int) -> Page:
        text = robots_of(host).text
        if text is None:
            return Page(404, (_HTML,), render_notice(404))
        return Page(200, (_PLAIN,), text.replace("{agent}", self.agent).encode())

    def _location(self, source: Resource, port: int) -> str:
        """Where a redirect points, absolute, relative, or with a fragment, as servers write it."""
        target = self._graph.redirect(source)
        if target.host != source.host or source.number % 2 == 0:
            return self._url(target, port)
        fragment = "#part-1" if source.number % 8 == 5 else ""
        path = path_of(target.kind, target.number)
        return relative_path(path_of(source.kind, source.number), path) + fragment

    def _html(self, source: Resource, port: int) -> bytes:
        rng = self._graph.rng("text", source)
        here = self._place(source, port)
        base, written_base = self._base(rng, here)
        hrefs = [spell(rng, self._place(target, port), base) for target in self._graph.links(source)]
        title = f"{source.kind.capitalize()} {source.number} of {here.address}"
        render = render_frameset if is_frameset(source) else render_page
        return render(rng, title, written_base, hrefs, self._pool)

    def _place(self, resource: Resource, port: int) -> Place:
        return Place(address_of(resource.host), port, path_of(resource.kind, resource.number))

    def _base(self, rng: Random, here: Place) -> tuple[Place, str | None]:
        """The base URL of a page, and how its base element writes it; None: it has none."""
        if rng.random() >= _BASE_SHARE:
            return here, None
        directory = f"/topic-{rng.randrange(1 + self.pages_per_host // PAGES_PER_TOPIC)}/"
        address = rng.choice((here.address, here.address, address_of(rng.randrange(self.hosts))))
        base = Place(address, here.port, directory + rng.choice(("", "index.html")))
        return base, spell(rng, base, here)


def _status(resource: Resource) -> int:
    match resource.kind:
        case Kind.MISSING:
            return 404
        case Kind.FAILING:
            return 503 if resource.number % 2 else 500
        case Kind.HOP:
            return 302 if resource.number % 2 else 301
        case Kind.LOOP:
            return 302
        case _:
            return 200
