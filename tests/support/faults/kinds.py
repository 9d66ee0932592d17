"""The kinds of faults. Each breaks something now, and says when it is mended.

To add one: a function, and its line in `KINDS`.
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.crawling.verdicts import pause
from tests.support.faults import disk, machine
from tests.support.faults.world import LEASE_S, POLL_S
from tests.support.redis_servers.aof import cut_since, size_of

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.support.faults.world import Node, World

REDIS, STORE, NEWCOMER = "redis", "store", "newcomer"
OUTAGE_S = 30.0
REFUSED = "does not have crawl"  # says a node that is started where another store is
OLD_ENOUGH_S = 3.0  # a crawl whose record is that old is not forgotten with it
HEARD_S = 5.0  # by then every node has spoken to a Redis that came back
OOM = "OOM command not allowed when used memory > 'maxmemory'."
# Options of the server, what makes it refuse writes, and what ends it.
_REFUSALS = (("min-replicas-to-write", "9", "0"), ("maxmemory", "1", "0"))


def kill(world: World, node: Node, rng: random.Random) -> None:
    """kill -9, and up to three seconds later the same command."""
    world.kill(node)
    world.later(rng.uniform(0, 3), lambda: world.start(node), lambda: world.release(node.name))


def term(world: World, node: Node, rng: random.Random) -> None:
    """SIGTERM, and the same command."""
    rest_s = rng.uniform(0, 3)
    world.terminate(node, lambda: world.later(rest_s, lambda: world.start(node), lambda: world.release(node.name)))


def nap(world: World, node: Node, rng: random.Random) -> None:
    """SIGSTOP for less than the lease."""
    node.signal(signal.SIGSTOP)
    world.later(rng.uniform(0.2, LEASE_S / 4), lambda: node.signal(signal.SIGCONT), lambda: world.release(node.name))


def stop(world: World, node: Node, rng: random.Random) -> None:
    """SIGSTOP for longer than the lease."""
    node.signal(signal.SIGSTOP)
    began_ms = _now_ms()

    def wake() -> None:
        node.signal(signal.SIGCONT)
        world.asleep_ms.append((began_ms, _now_ms()))
        world.say(f"{node.name} woke")
        world.release(node.name)

    world.later(LEASE_S * rng.uniform(1.1, 1.6), wake)


def gone(world: World, node: Node, rng: random.Random) -> None:
    """The machine is lost with its disk; another one gets its name, a while later."""
    world.kill(node)
    node.lose_disk()
    world.later(rng.uniform(0, LEASE_S), lambda: world.start(node), lambda: world.release(node.name))


def join(world: World, rng: random.Random) -> bool:
    """A node joins, and stays; False if there are as many as there may be."""
    node = world.add_node()
    world.say(f"{node.name} joined" if node else "there are enough nodes")
    world.release(NEWCOMER)
    return node is not None


def away(world: World, node: Node, rng: random.Random) -> None:
    """The node is cut off from Redis for longer than its lease; then all that it had sent arrives."""
    node.link.hold_requests()
    _mend_link(world, node, LEASE_S * rng.uniform(1.1, 1.6))


def cut(world: World, node: Node, rng: random.Random) -> None:
    """Every connection of the node to Redis is cut."""
    node.link.hang_up()
    world.release(node.name)


def part(world: World, node: Node, rng: random.Random) -> None:
    """A share of the node's calls is refused, each alone of its pipeline."""
    node.link.refuse(rng.choice([0.1, 0.5, 0.9]), OOM)
    _mend_link(world, node, rng.uniform(0.1, 3))


def lost(world: World, node: Node, rng: random.Random) -> None:
    """What the node sends is done, and it never hears so."""
    node.link.lose_replies()
    _mend_link(world, node, rng.uniform(0.05, 1))


def late(world: World, node: Node, rng: random.Random) -> None:
    """The network is away; the node is cut off and goes on; what it had sent arrives seconds later."""
    node.link.hold_requests()

    def hang_up() -> None:
        node.link.hang_up()
        world.later(rng.uniform(0.5, 15), deliver)

    def deliver() -> None:
        world.say(f"{node.name}: {node.link.deliver()} commands arrive late")
        world.release(node.name)

    world.later(rng.uniform(0.05, 2), hang_up)


def full(world: World, node: Node, rng: random.Random) -> None:
    """The disk of the state is full."""
    _fill(world, node, machine.STATE, disk.FULL, rng.uniform(0.2, 4))


def pages(world: World, node: Node, rng: random.Random) -> None:
    """The disk of the WARC files is full."""
    _fill(world, node, machine.WARC, disk.PAGES_FULL, rng.uniform(0.2, 4))


def cramped(world: World, node: Node, rng: random.Random) -> None:
    """kill -9, and the same command on a disk that is full; there is room before the node may give up."""
    there = node.machine
    assert there is not None
    world.kill(node)
    there.fill(machine.STATE)
    world.start(node)
    world.later(rng.uniform(3, 15), lambda: there.make_room(machine.STATE), lambda: world.release(node.name))


def synced(world: World, node: Node, rng: random.Random) -> None:
    """The disk of the WARC files takes pages and does not say that it has them."""
    _disk(world, node, disk.PAGES_HANGING, rng.uniform(0.2, 15))


def slow(world: World, node: Node, rng: random.Random) -> None:
    """The disk of the state hangs for less than the lease."""
    _disk(world, node, disk.HANGING, rng.uniform(0.2, LEASE_S / 3))


def frozen(world: World, node: Node, rng: random.Random) -> None:
    """The disk of the state hangs for longer than the lease."""
    _disk(world, node, disk.HANGING, LEASE_S * rng.uniform(1.1, 1.6))


def redis(world: World, rng: random.Random) -> bool:
    """kill -9 of Redis, and a restart on what it had handed to the kernel: nothing is forgotten."""
    world.server.kill()
    pause(rng.uniform(0, 1.5))
    world.server.start()
    world.release(REDIS)
    return True


def outage(world: World, rng: random.Random) -> bool:
    """kill -9 of Redis, which forgets up to its last two seconds and is away for up to half a minute."""
    forgotten_s, away_s = rng.uniform(0, 2), rng.uniform(0, OUTAGE_S)
    if world.crawl_age_s() < OLD_ENOUGH_S:
        return _too_young(world)
    busy, since = world.struck_since(len(world.said)), len(world.said)
    world.server.kill()
    killed_ms = _now_ms()
    had = world.copy_of(world.server.aof)
    cut_bytes = cut_since(world.server.aof, killed_ms / 1000 - forgotten_s)
    kept_bytes = size_of(world.server.aof)
    world.say(f"redis forgets {cut_bytes} bytes of {forgotten_s:.1f} s, and is away for {away_s:.1f} s")

    def note() -> None:
        # What ends while it is away is known to its node, which says so if nothing befalls it.
        silent = busy | world.struck_since(since)
        world.repeats.forget(had, kept_bytes, killed_ms - round(forgotten_s * 1000), killed_ms, silent)

    def come_back() -> None:
        world.server.start()
        world.say("redis is back")
        world.later(HEARD_S, note)
        world.release(REDIS)

    world.later(away_s, come_back)
    return True


def hang(world: World, rng: random.Random) -> bool:
    """Redis neither answers nor fails."""
    world.server.pause()
    pause(rng.uniform(0.2, LEASE_S / 3))
    world.server.resume()
    world.release(REDIS)
    return True


def rewind(world: World, rng: random.Random) -> bool:
    """The machine of Redis loses its power: one to two seconds are forgotten."""
    return _forget(world, 1)


def forget(world: World, rng: random.Random) -> bool:
    """An old copy of Redis' files is put back: three to ten seconds are forgotten, and it is the same server."""
    return _forget(world, rng.randint(3, 10))


def failover(world: World, rng: random.Random) -> bool:
    """Redis' replica lags for three to ten seconds, Redis is killed, and the replica takes its place."""
    if world.crawl_age_s() < OLD_ENOUGH_S:
        return _too_young(world)
    began_ms, kept_bytes = _now_ms(), world.server.fall_behind(world.replica)

    def take_over() -> None:
        lost = world.server.aof
        world.fail_over()
        world.repeats.forget(lost, kept_bytes, began_ms, _now_ms() + round(HEARD_S * 1000))
        world.repeats.follow(world.server, kept_bytes)
        world.say("the replica has taken over")
        world.release(REDIS)

    world.later(rng.uniform(3, 10), take_over)
    return True


def refuse(world: World, rng: random.Random) -> bool:
    """Redis answers, and takes no writes."""
    name, broken, well = rng.choice(_REFUSALS)
    client = world.server.client
    client.config_set(name, broken)
    world.later(rng.uniform(0.1, 3), lambda: client.config_set(name, well), lambda: world.release(REDIS))
    return True


def readonly(world: World, rng: random.Random) -> bool:
    """Redis becomes the replica of nobody, as in a fail-over that is taken back."""
    client = world.server.client
    client.replicaof("127.0.0.1", "1")
    world.later(rng.uniform(0.1, 3), lambda: client.replicaof("NO", "ONE"), lambda: world.release(REDIS))
    return True


def unmounted(world: World, node: Node, rng: random.Random) -> None:
    """The store is no longer mounted on a node's machine; where it was is an empty directory."""
    there = node.machine
    assert there is not None
    there.unmount(machine.STORE)

    def look() -> None:
        if REFUSED not in node.crawl.log.read_text():
            world.release(node.name)
        elif node.status is None:
            world.later(POLL_S, look)
        else:
            world.say(f"{node.name} did not start without the store: {node.status}")
            world.start(node)
            world.release(node.name)

    world.later(rng.uniform(0.5, 20), lambda: there.mount(machine.STORE), look)


def store_full(world: World, rng: random.Random) -> bool:
    """The disk of the store is full."""
    network = world.network
    assert network is not None
    network.fill(machine.STORE)
    return _mend_store(world, rng.uniform(0.5, 20), lambda: network.make_room(machine.STORE))


def store_refuses(world: World, rng: random.Random) -> bool:
    """The store takes nothing: it is read-only on all machines, or answers with errors."""
    if world.s3 is not None:
        return _s3(world, "500", rng.uniform(0.5, 20))

    machines = [node.machine for node in world.nodes if node.machine is not None]
    for each in machines:
        each.refuse_writes(machine.STORE)

    def mend() -> None:
        for each in machines:
            each.allow_writes(machine.STORE)

    return _mend_store(world, rng.uniform(0.5, 20), mend)


def store_slow(world: World, rng: random.Random) -> bool:
    """The store takes its time for each request."""
    return _s3(world, "slow", rng.uniform(2, 20))


def store_hangs(world: World, rng: random.Random) -> bool:
    """The store answers nothing, also for longer than a call waits."""
    return _s3(world, "hang", rng.uniform(1, 40))


@dataclass(frozen=True)
class Kind:
    """A kind of fault: of one node, of Redis, of the store, or of the crawl, which gets a node more."""

    of_node: Callable[[World, Node, random.Random], None] | None = None
    of_redis: Callable[[World, random.Random], bool] | None = None
    of_store: Callable[[World, random.Random], bool] | None = None
    of_crawl: Callable[[World, random.Random], bool] | None = None
    weight: int = 2
    is_possible: Callable[[World], bool] = lambda world: True


def _has_own_disks(world: World) -> bool:
    return world.own_disks


def _has_machines(world: World) -> bool:
    return world.network is not None


def _has_s3(world: World) -> bool:
    return world.s3 is not None


def _has_mounted_store(world: World) -> bool:
    return _has_machines(world) and not _has_s3(world)


KINDS = {
    "kill": Kind(kill, weight=4),
    "term": Kind(term, weight=1),
    "nap": Kind(nap),
    "stop": Kind(stop, weight=1),
    "cut": Kind(cut),
    "away": Kind(away, weight=1),
    "gone": Kind(gone, is_possible=_has_own_disks),
    "join": Kind(of_crawl=join, weight=1, is_possible=_has_own_disks),
    "part": Kind(part),
    "lost": Kind(lost),
    "late": Kind(late),
    "full": Kind(full),
    "pages": Kind(pages),
    "synced": Kind(synced),
    "cramped": Kind(cramped, is_possible=_has_machines),
    "slow": Kind(slow),
    "frozen": Kind(frozen, weight=1),
    "redis": Kind(of_redis=redis),
    "hang": Kind(of_redis=hang),
    "rewind": Kind(of_redis=rewind, weight=1),
    "forget": Kind(of_redis=forget, weight=1),
    "failover": Kind(of_redis=failover, weight=1),
    "refuse": Kind(of_redis=refuse),
    "readonly": Kind(of_redis=readonly),
    "outage": Kind(of_redis=outage, weight=3),
    "unmounted": Kind(unmounted, weight=3, is_possible=_has_mounted_store),
    "store-full": Kind(of_store=store_full, is_possible=_has_mounted_store),
    "store-refuses": Kind(of_store=store_refuses, is_possible=_has_machines),
    "store-slow": Kind(of_store=store_slow, is_possible=_has_s3),
    "store-hangs": Kind(of_store=store_hangs, is_possible=_has_s3),
}


def strike(world: World, name: str, rng: random.Random) -> bool:
    """Let one fault of a kind happen; False when it cannot now, or all that it could happen to has one."""
    kind = KINDS[name]
    if kind.of_node is not None:
        free = [node for node in world.nodes if world.is_free(node.name)]
        if not free:
            return False
        node = rng.choice(free)
        world.say(f"{name} {node.name}")
        world.occupy(node.name)
        kind.of_node(world, node, rng)
        return True
    happen = kind.of_redis or kind.of_store or kind.of_crawl
    victim = REDIS if kind.of_redis else STORE if kind.of_store else NEWCOMER
    assert happen is not None
    # What Redis is told now, it must hear.
    if not world.is_free(victim) or not (world.server.is_up or kind.of_store):
        return False
    world.say(name)
    world.occupy(victim)
    return happen(world, rng)


def _forget(world: World, seconds: int) -> bool:
    # Never that there was a crawl: that is another matter. Nor more than the server's file tells.
    seconds = min(seconds, int(min(world.crawl_age_s(), world.server_age_s())) - 3)
    if seconds < 1:
        return _too_young(world)
    now_ms = _now_ms()
    world.server.kill()
    had = world.copy_of(world.server.aof)
    world.say(f"redis forgets {world.server.cut_aof_of_killed(seconds)} bytes")
    kept_bytes = size_of(world.server.aof)
    world.server.start()
    world.repeats.forget(had, kept_bytes, now_ms - (seconds + 1) * 1000, _now_ms() + round(HEARD_S * 1000))
    world.release(REDIS)
    return True


def _too_young(world: World) -> bool:
    world.say("redis is too young to forget")
    world.release(REDIS)
    return False


def _disk(world: World, node: Node, what: str, seconds: float) -> None:
    disk.say(node.word, what)
    world.later(seconds, lambda: world.mend_disk(node), lambda: world.release(node.name))


def _fill(world: World, node: Node, name: str, word: str, seconds: float) -> None:
    if (there := node.machine) is None:
        _disk(world, node, word, seconds)
        return
    there.fill(name)
    world.later(seconds, lambda: there.make_room(name), lambda: world.release(node.name))


def _s3(world: World, fault: str, seconds: float) -> bool:
    server = world.s3
    assert server is not None
    server.become(fault)
    return _mend_store(world, seconds, lambda: server.become(""))


def _mend_store(world: World, seconds: float, mend: Callable[[], object]) -> bool:
    world.later(seconds, mend, lambda: world.say("the store is well"), lambda: world.release(STORE))
    return True


def _mend_link(world: World, node: Node, seconds: float) -> None:
    world.later(seconds, node.link.mend, lambda: world.release(node.name))


def _now_ms() -> int:
    return round(time.time() * 1000)
