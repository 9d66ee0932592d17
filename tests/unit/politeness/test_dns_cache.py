from __future__ import annotations

import asyncio
import socket
from collections import Counter

import pytest

from bigcrawl.clock import ManualClock
from bigcrawl.politeness.dns_cache import FAILURE_FIRST_MS, FAILURE_LONGEST_MS, DnsAnswer, DnsCache, DnsError


class Zone:
    """A resolver whose names are in a dict; it answers when `open` is set, and counts questions."""

    def __init__(self, names: dict[str, list[str] | Exception] | None = None) -> None:
        self.names = names or {}
        self.asked: Counter[str] = Counter()
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, host: str) -> list[str]:
        self.asked[host] += 1
        await self.open.wait()
        answer = self.names.get(host, ["192.0.2.1"])
        if isinstance(answer, Exception):
            raise answer
        return answer


def make_cache(zone: Zone, clock: ManualClock | None = None, entries_max: int = 100) -> DnsCache:
    return DnsCache(zone, clock or ManualClock(), ttl_ms=10_000, negative_ttl_ms=1_000, entries_max=entries_max)


async def failure(cache: DnsCache, host: str) -> DnsError:
    with pytest.raises(DnsError) as caught:
        await cache.lookup(host)
    return caught.value


def test_an_answer_is_kept_for_its_time() -> None:
    """Within `ttl_ms` the resolver is asked once, from then on again; peek never asks."""

    async def main() -> None:
        zone, clock = Zone({"a.example": ["192.0.2.1", "2001:db8::1"]}), ManualClock()
        cache = make_cache(zone, clock)
        assert cache.cached_addresses("a.example") is None
        assert await cache.lookup("a.example") == ["192.0.2.1", "2001:db8::1"]
        clock.advance(9_999)
        assert await cache.lookup("a.example") == cache.cached_addresses("a.example") == ["192.0.2.1", "2001:db8::1"]
        assert zone.asked["a.example"] == 1
        clock.advance(1)
        assert cache.cached_addresses("a.example") is None
        await cache.lookup("a.example")
        assert zone.asked["a.example"] == 2
        cache._check()

    asyncio.run(main())


def test_callers_cannot_change_what_is_kept() -> None:
    """Each caller has a list of its own."""

    async def main() -> None:
        cache = make_cache(Zone())
        (await cache.lookup("a.example")).clear()
        assert cache.cached_addresses("a.example") == ["192.0.2.1"]

    asyncio.run(main())


def test_a_failure_is_kept_for_its_time() -> None:
    """Within `negative_ttl_ms` everybody gets the failure with the time that is left, then it is retried."""

    async def main() -> None:
        zone, clock = Zone({"gone.example": socket.gaierror(socket.EAI_NONAME, "no")}), ManualClock()
        cache = make_cache(zone, clock)
        first = await failure(cache, "gone.example")
        assert (first.host, first.reason, first.retry_after_ms) == ("gone.example", "not-found", 1_000)
        clock.advance(400)
        assert (await failure(cache, "gone.example")).retry_after_ms == 600
        assert cache.cached_addresses("gone.example") is None
        assert zone.asked["gone.example"] == 1
        clock.advance(600)
        zone.names["gone.example"] = ["192.0.2.9"]
        assert await cache.lookup("gone.example") == ["192.0.2.9"]

    asyncio.run(main())


def test_that_a_name_is_not_there_is_kept_for_its_time() -> None:
    """The resolver's word for how long counts, where it has one."""

    async def main() -> None:
        zone, clock = Zone(), ManualClock()
        zone.names["gone.example"] = DnsAnswer((), 5_000)  # type: ignore[assignment]
        cache = make_cache(zone, clock)
        assert (await failure(cache, "gone.example")).retry_after_ms == 5_000
        clock.advance(4_999)
        await failure(cache, "gone.example")
        assert zone.asked["gone.example"] == 1

    asyncio.run(main())


def test_silence_of_dns_is_asked_again_with_back_off() -> None:
    """Each failure in a row waits twice as long, to a bound, and hosts not all alike; an answer ends it."""

    async def main() -> None:
        zone, clock = Zone({"a.example": TimeoutError(), "b.example": TimeoutError()}), ManualClock()
        cache = make_cache(zone, clock)
        waits = []
        for _ in range(6):
            waits.append((await failure(cache, "a.example")).retry_after_ms)
            clock.advance(waits[-1])
        assert FAILURE_FIRST_MS <= waits[0] < 1.25 * FAILURE_FIRST_MS
        assert waits[1] == pytest.approx(2 * waits[0], abs=2)
        assert FAILURE_LONGEST_MS <= waits[4] == waits[5] < 1.25 * FAILURE_LONGEST_MS
        assert (await failure(cache, "b.example")).retry_after_ms != waits[0]
        zone.names["a.example"] = ["192.0.2.1"]
        await cache.lookup("a.example")
        clock.advance(10_000)
        zone.names["a.example"] = TimeoutError()
        assert (await failure(cache, "a.example")).retry_after_ms == waits[0]

    asyncio.run(main())


def test_answer_may_be_used_a_little_longer_by_who_says_so() -> None:
    """Between the check of an address and the connection its answer may end."""

    async def main() -> None:
        zone, clock = Zone(), ManualClock()
        cache = make_cache(zone, clock)
        await cache.lookup("a.example")
        clock.advance(10_500)
        assert cache.cached_addresses("a.example") is None
        assert cache.cached_addresses("a.example", 501) == ["192.0.2.1"]
        assert cache.cached_addresses("a.example", 500) is None

    asyncio.run(main())


class Store:
    """What other nodes have found out."""

    def __init__(self) -> None:
        self.known: dict[str, DnsAnswer] = {}
        self.told: dict[str, DnsAnswer] = {}

    async def get(self, host: str) -> DnsAnswer | None:
        return self.known.get(host)

    def put(self, host: str, answer: DnsAnswer) -> None:
        self.told[host] = answer


def test_answers_are_shared() -> None:
    """What others know is not asked for, holds as long as it does for them, and is not told back."""

    async def main() -> None:
        zone, clock, store = Zone({"mute.example": TimeoutError(), "gone.example": []}), ManualClock(), Store()
        store.known = {"a.example": DnsAnswer(("192.0.2.7",), 3_000), "none.example": DnsAnswer((), 2_000)}
        cache = make_cache(zone, clock)
        cache.use_store(store)
        assert await cache.lookup("a.example") == ["192.0.2.7"]
        assert (await failure(cache, "none.example")).retry_after_ms == 2_000
        clock.advance(3_000)
        assert cache.cached_addresses("a.example") is None
        assert not zone.asked
        await cache.lookup("b.example")
        await failure(cache, "gone.example")
        await failure(cache, "mute.example")
        assert store.told == {"b.example": (("192.0.2.1",), 10_000), "gone.example": ((), 1_000)}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (socket.gaierror(socket.EAI_NONAME, ""), "not-found"),
        (socket.gaierror(socket.EAI_NODATA, ""), "not-found"),
        (socket.gaierror(socket.EAI_AGAIN, ""), "temporary"),
        (socket.gaierror(socket.EAI_FAIL, ""), "failed"),
        (TimeoutError(), "timeout"),
        (OSError("no network"), "failed"),
        (ZeroDivisionError(), "failed"),
    ],
)
def test_whatever_the_resolver_raises_is_the_hosts_failure(error: Exception, reason: str) -> None:
    """Nothing but DnsError leaves a look-up."""

    async def main() -> None:
        assert (await failure(make_cache(Zone({"a.example": error})), "a.example")).reason == reason

    asyncio.run(main())


def test_a_resolver_may_say_when_to_ask_again() -> None:
    """A DnsError's own time is kept to; an empty answer is a name without addresses."""

    async def main() -> None:
        zone = Zone({"a.example": DnsError("a.example", "temporary", 77), "empty.example": []})
        cache = make_cache(zone)
        assert (await failure(cache, "a.example")).retry_after_ms == 77
        assert (await failure(cache, "empty.example")).reason == "not-found"

    asyncio.run(main())


@pytest.mark.parametrize(
    "host",
    [
        ".",
        "a..b",
        ".a",
        "a" * 64 + ".example",
        ".".join(["a" * 60] * 5),
        "b\u00fc.example",
        "a\0b.example",
        "",
    ],
)
def test_names_that_dns_cannot_hold_are_not_asked_for(host: str) -> None:
    """They fail at once, as malformed."""

    async def main() -> None:
        zone = Zone()
        assert (await failure(make_cache(zone), host)).reason == "malformed-name"
        assert not zone.asked

    asyncio.run(main())


@pytest.mark.parametrize("host", ["192.0.2.7", "2001:db8::1", "::1"])
def test_ip_literals_are_their_own_address(host: str) -> None:
    """Neither look-up nor peek asks anybody, and nothing is kept for them."""

    async def main() -> None:
        zone = Zone()
        cache = make_cache(zone)
        assert await cache.lookup(host) == cache.cached_addresses(host) == [host]
        assert not zone.asked
        assert "0 kept" in repr(cache)

    asyncio.run(main())


def test_look_ups_of_one_name_share_one_question() -> None:
    """A hundred tasks that ask for a name while it is being asked for wait for that answer."""

    async def main() -> None:
        zone = Zone()
        zone.open.clear()
        cache = make_cache(zone)
        tasks = [asyncio.create_task(cache.lookup("a.example")) for _ in range(100)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert "1 asked" in repr(cache)
        zone.open.set()
        assert await asyncio.gather(*tasks) == [["192.0.2.1"]] * 100
        assert zone.asked == {"a.example": 1}
        assert "0 asked" in repr(cache)
        cache._check()

    asyncio.run(main())


def test_a_cancelled_waiter_takes_nobodys_answer_with_it() -> None:
    """The question goes on for the others, and is kept even when none is left."""

    async def main() -> None:
        zone = Zone()
        zone.open.clear()
        cache = make_cache(zone)
        first, second = (asyncio.create_task(cache.lookup("a.example")) for _ in range(2))
        alone = asyncio.create_task(cache.lookup("b.example"))
        await asyncio.sleep(0)
        first.cancel()
        alone.cancel()
        await asyncio.sleep(0)
        zone.open.set()
        assert await second == ["192.0.2.1"]
        assert first.cancelled()
        assert cache.cached_addresses("b.example") == ["192.0.2.1"]

    asyncio.run(main())


def test_the_number_of_answers_is_bounded_and_the_least_used_goes() -> None:
    """Answers and failures count alike; using an answer keeps it."""

    async def main() -> None:
        zone = Zone({"bad.example": OSError()})
        cache = make_cache(zone, entries_max=3)
        for host in ("a.example", "b.example", "c.example"):
            await cache.lookup(host)
        await cache.lookup("a.example")
        await failure(cache, "bad.example")
        assert cache.cached_addresses("b.example") is None
        assert cache.cached_addresses("a.example") is not None
        for number in range(50):
            await cache.lookup(f"{number}.example")
            cache._check()

    asyncio.run(main())


def test_close_gives_up_what_is_being_asked() -> None:
    """Waiters are cancelled, and nothing is left running."""

    async def main() -> None:
        zone = Zone()
        zone.open.clear()
        cache = make_cache(zone)
        waiter = asyncio.create_task(cache.lookup("a.example"))
        await asyncio.sleep(0)
        await cache.close()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert "0 asked" in repr(cache)

    asyncio.run(main())


def test_close_waits_until_questions_have_ended() -> None:
    """A resolver that needs a moment to let go of its socket has had it when the cache is closed."""
    ended: list[str] = []

    async def main() -> None:
        asked = asyncio.Event()

        async def slow_to_go(host: str) -> list[str]:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.01)
                ended.append(host)
            raise AssertionError("nothing sets it")

        cache = DnsCache(slow_to_go, ManualClock(), ttl_ms=10_000, negative_ttl_ms=1_000, entries_max=10)
        waiter = asyncio.create_task(cache.lookup("a.example"))
        await asked.wait()
        await cache.close()
        assert ended == ["a.example"]
        await asyncio.gather(waiter, return_exceptions=True)

    asyncio.run(main())
