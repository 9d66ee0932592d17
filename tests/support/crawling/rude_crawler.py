"""A small crawler that keeps every rule of politeness, or all but one: it speaks HTTP over sockets of its own.

It keeps gaps from the moment it has an answer, which no log shows shorter, and works on a web of names: it is
told where each host is, as a resolver would. Hosts are crawled side by side, as far as the gates let it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from protego import Protego

from bigcrawl_simweb.basics.exchange import ROBOTS_TARGET

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from bigcrawl_simweb.check.rules import CheckRules

AGENT = "rudebot"
JUMP_S = 0.3  # a busy machine must not let the two requests come together


class Rudeness(Enum):
    """The one thing that the crawler does wrong; the value is the kind of finding that must tell of it."""

    MISSES_A_PAGE = "missing"
    FOLLOWS_WHAT_IS_NO_LINK = "unexpected"
    POSTS_INSTEAD_OF_GETTING = "wrong_status"
    FETCHES_TWICE = "refetched"
    RETRIES_TOO_OFTEN = "over_retried"
    TWO_AT_ONCE = "concurrent"
    NO_HOST_DELAY = "host_too_soon"
    TWO_AT_ONCE_AT_A_PLD = "pld_concurrent"
    NO_PLD_DELAY = "pld_too_soon"
    NO_SERVER_GAP = "server_too_soon"
    IGNORES_RETRY_AFTER = "retry_after_ignored"
    IGNORES_DISALLOW = "disallowed"
    ROBOTS_TXT_SECOND = "robots_not_first"
    ROBOTS_TXT_ONCE_AND_FOR_ALL = "robots_stale"
    ROBOTS_TXT_EVERY_TIME = "robots_refetched"
    DIVES_INTO_CALENDARS = "too_deep"
    FOLLOWS_NOFOLLOW = "nofollowed"


@dataclass
class Received:
    """An answer as it came; `status` 0: none did."""

    status: int = 0
    headers: dict[str, str] | None = None
    body: bytes = b""

    @property
    def is_failure(self) -> bool:
        told = (self.headers or {}).get("content-length", "0")
        return self.status in (0, 429) or self.status >= 500 or len(self.body) < int(told)

    @property
    def wait_s(self) -> float:
        return float((self.headers or {}).get("retry-after", "0")) if self.status in (429, 503) else 0.0


class Gate:
    """Lets one request through at a time, and the next no sooner than a delay after the end of the last."""

    def __init__(self, delay_ms: int) -> None:
        self._delay_s = delay_ms / 1000
        self._lock = asyncio.Lock()
        self._opens_s = 0.0

    @asynccontextmanager
    async def passed(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        async with self._lock:
            await _sleep_until(self._opens_s)
            try:
                yield
            finally:
                self._opens_s = loop.time() + self._delay_s


class RudeCrawler:
    """Crawls once what the seeds lead to.

    Args:
        rules: what it keeps to, for lack of opinions of its own.
        address_of: where a host is.
        rudeness: what it does wrong; None: nothing.
    """

    def __init__(self, rules: CheckRules, address_of: Callable[[str], str], rudeness: Rudeness | None = None) -> None:
        assert rules.host_connections == rules.pld_connections == 1
        self._rules = rules
        self._address_of = address_of
        self._rudeness = rudeness
        self._pld_of = rules.pld_of or (lambda host: host)
        self._waiting: defaultdict[str, deque[str]] = defaultdict(deque)
        self._seen: set[tuple[str, str]] = set()
        self._tries: Counter[tuple[str, str]] = Counter()
        self._calendar: Counter[str] = Counter()
        self._robots: dict[str, Protego] = {}
        self._silent_until_s: dict[str, float] = {}
        host_delay_ms = 0 if rudeness is Rudeness.NO_HOST_DELAY else rules.host_delay_ms
        pld_delay_ms = 0 if rudeness is Rudeness.NO_PLD_DELAY else rules.pld_delay_ms
        self._host_gates = defaultdict[str, Gate](lambda: Gate(host_delay_ms))
        self._pld_gates = defaultdict[str, Gate](lambda: Gate(pld_delay_ms))
        self._server_gates = defaultdict[str, Gate](lambda: Gate(rules.server_delay_ms))

    def crawl(self, seeds: Iterable[str]) -> None:
        """Fetch the URLs and what they lead to; returns when there is nothing left."""
        asyncio.run(self._crawl(seeds))

    def _is(self, rudeness: Rudeness) -> bool:
        return self._rudeness is rudeness

    async def _crawl(self, seeds: Iterable[str]) -> None:
        for seed in seeds:
            self._find(seed)
        turns: dict[asyncio.Task[None], str] = {}
        while turns or any(self._waiting.values()):
            resting = [host for host in self._waiting if self._waiting[host] and host not in turns.values()]
            turns |= {asyncio.create_task(self._turn(host)): host for host in resting}
            done, _ = await asyncio.wait(turns, return_when=asyncio.FIRST_COMPLETED)
            for turn in done:
                del turns[turn]
                turn.result()

    async def _turn(self, host: str) -> None:
        """Fetch the host's next page; its robots.txt when it has to be."""
        late = self._is(Rudeness.ROBOTS_TXT_SECOND) and host not in self._robots
        if late:
            self._robots[host] = Protego.parse("")
        if host not in self._robots or self._is(Rudeness.ROBOTS_TXT_EVERY_TIME):
            await self._ask_robots(host)
        elif self._is(Rudeness.ROBOTS_TXT_ONCE_AND_FOR_ALL):
            await asyncio.sleep(self._rules.robots_max_age_ms / 1000)
        target = self._waiting[host].popleft()
        if self._robots[host].can_fetch(target, AGENT) or self._is(Rudeness.IGNORES_DISALLOW):
            await self._visit(host, target)
        if late:
            await self._ask_robots(host)

    async def _ask_robots(self, host: str) -> None:
        answer = await self._fetch(host, ROBOTS_TARGET)
        self._robots[host] = Protego.parse(answer.body.decode() if answer.status == 200 else "")

    async def _visit(self, host: str, target: str) -> None:
        """Fetch a page, and put what it leads to, or itself, in the queue."""
        self._tries[host, target] += 1
        post = self._is(Rudeness.POSTS_INSTEAD_OF_GETTING) and target == "/page.html"
        answer = await self._fetch(host, target, "POST" if post else "GET")
        retries = self._rules.retries + self._is(Rudeness.RETRIES_TOO_OFTEN)
        twice = self._is(Rudeness.FETCHES_TWICE) and target == "/page.html"
        if (answer.is_failure and self._tries[host, target] <= retries) or (twice and self._tries[host, target] == 1):
            self._waiting[host].append(target)
        elif answer.status == 200:
            self._find_all(host, target, answer.body.decode())

    async def _jump_the_queue(self, host: str) -> None:
        """While a slow request is under way, and the server gap long over, fetch the next page as well."""
        await asyncio.sleep(JUMP_S)
        answer = await self._exchange(host, target := self._waiting[host].popleft(), "GET")
        self._find_all(host, target, answer.body.decode())

    async def _fetch(self, host: str, target: str, method: str = "GET") -> Received:
        """Send a request as soon as every gate is open, and keep them until it is answered."""
        await _sleep_until(self._silent_until_s.get(host, 0.0))
        gates = [self._host_gates[host]]
        if not self._is(Rudeness.TWO_AT_ONCE_AT_A_PLD):
            gates.append(self._pld_gates[self._pld_of(host)])
        if not self._is(Rudeness.NO_SERVER_GAP):
            gates.append(self._server_gates[self._address_of(host)])
        async with AsyncExitStack() as stack:
            for gate in gates:
                await stack.enter_async_context(gate.passed())
            if self._is(Rudeness.TWO_AT_ONCE) and target == "/slow.html":
                answer, _ = await asyncio.gather(self._exchange(host, target, method), self._jump_the_queue(host))
            else:
                answer = await self._exchange(host, target, method)
        if not self._is(Rudeness.IGNORES_RETRY_AFTER):
            self._silent_until_s[host] = asyncio.get_running_loop().time() + answer.wait_s
        return answer

    async def _exchange(self, host: str, target: str, method: str) -> Received:
        reader, writer = await asyncio.open_connection(self._address_of(host), self._rules.port)
        fields = f"Host: {host}:{self._rules.port}\r\nUser-Agent: {AGENT}\r\nConnection: close\r\n"
        try:
            writer.write(f"{method} {target} HTTP/1.1\r\n{fields}\r\n".encode())
            return _parsed(await reader.read(-1))
        except ConnectionResetError:
            return Received()
        finally:
            writer.close()

    def _find_all(self, host: str, target: str, html: str) -> None:
        links = _Links(follow_nofollow=self._is(Rudeness.FOLLOWS_NOFOLLOW))
        links.feed(html)
        for link in links.found:
            self._find(urljoin(f"http://{host}:{self._rules.port}{target}", link))
            if self._is(Rudeness.FOLLOWS_WHAT_IS_NO_LINK):
                self._find(f"http://{host}:{self._rules.port}{urlsplit(link).path.removesuffix('.html')}")

    def _find(self, url: str) -> None:
        """Queue what is new, but for the depths of calendars."""
        parts = urlsplit(url)
        host, target = parts.hostname or "", parts.path
        missed = self._is(Rudeness.MISSES_A_PAGE) and target == "/page.html"
        if (host, target) in self._seen or missed:
            return
        self._seen.add((host, target))
        if target.startswith("/calendar/"):
            assert self._rules.endless_max is not None
            self._calendar[self._pld_of(host)] += 1
            depth = self._rules.endless_max + 2 * self._is(Rudeness.DIVES_INTO_CALENDARS)
            if self._calendar[self._pld_of(host)] > depth:
                return
        self._waiting[host].append(target)


class _Links(HTMLParser):
    def __init__(self, *, follow_nofollow: bool) -> None:
        super().__init__()
        self.found: list[str] = []
        self._follow_nofollow = follow_nofollow

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        nofollow = "nofollow" in (values.get("rel") or "").split()
        if tag == "a" and (href := values.get("href")) and (self._follow_nofollow or not nofollow):
            self.found.append(href)


def _parsed(data: bytes) -> Received:
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return Received()
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Received(int(status_line.split()[1]), headers, body)


async def _sleep_until(time_s: float) -> None:
    """Return at `time_s` of the loop's clock or later, never sooner."""
    loop = asyncio.get_running_loop()
    while (left_s := time_s - loop.time()) > 0:  # noqa: ASYNC110 - a timer may fire a little early
        await asyncio.sleep(left_s)
