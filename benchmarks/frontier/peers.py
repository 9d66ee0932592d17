"""What others schedule with: one request is pushed for each that is popped, so that the queue stays as it is."""

from __future__ import annotations

import time
from collections import deque
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.squeues import LifoMemoryQueue
from scrapy.utils.httpobj import urlparse_cached
from scrapy_redis.queue import PriorityQueue

from benchmarks.crawl import procfs
from benchmarks.frontier.ours import IN_FLIGHT, Cost
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from collections.abc import Callable

CPU_S_MAX: Final = 5.0  # of one measurement: a queue that looks at all hosts is not asked 10,000 times


class _Slots:
    """Scrapy's downloader as its priority queue sees it: the slots, and what is active in each."""

    def __init__(self) -> None:
        self.slots: dict[str, SimpleNamespace] = {}

    def get_slot_key(self, request: Request) -> str:
        return urlparse_cached(request).hostname or ""

    def start(self, request: Request) -> None:
        self.slots.setdefault(self.get_slot_key(request), SimpleNamespace(active=set())).active.add(request)

    def end(self, request: Request) -> None:
        self.slots[self.get_slot_key(request)].active.discard(request)


def measure_scrapy(hosts: int, pages: int) -> tuple[Cost, Cost]:
    """The cost of a pop and of a push, with a request waiting for every host and `IN_FLIGHT` active."""
    crawler: Any = Crawler(Spider)
    slots = _Slots()
    crawler.engine = SimpleNamespace(downloader=slots)
    queue = DownloaderAwarePriorityQueue.from_crawler(crawler, LifoMemoryQueue, "")
    for number in range(max(hosts, 2 * IN_FLIGHT)):
        queue.push(_request(number % hosts, number))
    active: deque[Request] = deque()

    def pop() -> Request:
        request = queue.pop()
        assert request is not None
        slots.start(request)
        active.append(request)
        if len(active) > IN_FLIGHT:
            slots.end(active.popleft())
        return request

    return _pop_and_push(pop, queue.push, pages, lambda: 0.0)


def measure_scrapy_redis(hosts: int, pages: int) -> tuple[Cost, Cost]:
    """The same of scrapy-redis; each call waits for Redis."""
    with PrivateRedis() as redis:
        procfs.pin(redis.pid, procfs.ORIGIN_CORE)
        spider = Spider("bench")
        queue = PriorityQueue(redis.client, spider, "%(spider)s:requests")
        for number in range(max(hosts, 2 * IN_FLIGHT)):
            queue.push(_request(number % hosts, number))
        return _pop_and_push(queue.pop, queue.push, pages, lambda: procfs.cpu_seconds(redis.pid))


def _request(host: int, number: int) -> Request:
    return Request(f"http://www.example{host}.com/page/{number}")


def _pop_and_push(
    pop: Callable[[], Request], push: Callable[[Request], Any], pages: int, redis_s: Callable[[], float]
) -> tuple[Cost, Cost]:
    """In turns of as many as are in flight: the clocks are too coarse for one."""
    popping, pushing = _Stopwatch(redis_s), _Stopwatch(redis_s)
    while popping.done < pages and popping.cpu_s + pushing.cpu_s < CPU_S_MAX:
        with popping:
            popped = [pop() for _ in range(IN_FLIGHT)]
        with pushing:
            for request in popped:
                push(request)
    return popping.cost(), pushing.cost()


class _Stopwatch:
    """Sums up CPU over blocks of `IN_FLIGHT` calls each."""

    def __init__(self, redis_s: Callable[[], float]) -> None:
        self._redis_now_s = redis_s
        self.done = 0
        self.cpu_s = 0.0
        self.redis_s = 0.0

    def __enter__(self) -> None:
        self.redis_s -= self._redis_now_s()
        self.cpu_s -= time.process_time()

    def __exit__(self, *_: object) -> None:
        self.cpu_s += time.process_time()
        self.redis_s += self._redis_now_s()
        self.done += IN_FLIGHT

    def cost(self) -> Cost:
        return Cost(self.cpu_s * 1e6 / self.done, self.redis_s * 1e6 / self.done, 1.0)
