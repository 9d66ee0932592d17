"""The kinds of faults. Each breaks something now, and says when it is mended.

To add one: a function, and its line in `KINDS`.
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.crawling.verdicts import pause
from tests.support.faults import disk
from tests.support.faults.world import LEASE_S
from tests.support.redis_servers.aof import size_of

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.support.faults.world import Node, World

REDIS, NEWCOMER = "redis", "newcomer"
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
    world.terminate(node)
    world.later(rng.uniform(0, 3), lambda: world.start(node), lambda: world.release(node.name))


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
    _disk(world, node, disk.FULL, rng.uniform(0.2, 4))


def pages(world: World, node: Node, rng: random.Random) -> None:
    """The disk of the WARC files is full."""
    _disk(world, node, disk.PAGES_FULL, rng.uniform(0.2, 4))


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


@dataclass(frozen=True)
class Kind:
    """A kind of fault: of one node, of Redis, or of the crawl, which gets a node more."""

    of_node: Callable[[World, Node, random.Random], None] | None = None
    of_redis: Callable[[World, random.Random], bool] | None = None
    of_crawl: Callable[[World, random.Random], bool] | None = None
    weight: int = 2
    own_disks: bool = False  # only where each node has one


KINDS = {
    "kill": Kind(kill, weight=4),
    "term": Kind(term, weight=1),
    "nap": Kind(nap),
    "stop": Kind(stop, weight=1),
    "cut": Kind(cut),
    "away": Kind(away, weight=1),
    "gone": Kind(gone, own_disks=True),
    "join": Kind(of_crawl=join, weight=1, own_disks=True),
    "part": Kind(part),
    "lost": Kind(lost),
    "late": Kind(late),
    "full": Kind(full),
    "pages": Kind(pages),
    "synced": Kind(synced),
    "slow": Kind(slow),
    "frozen": Kind(frozen, weight=1),
    "redis": Kind(of_redis=redis),
    "hang": Kind(of_redis=hang),
    "rewind": Kind(of_redis=rewind, weight=1),
    "forget": Kind(of_redis=forget, weight=1),
    "failover": Kind(of_redis=failover, weight=1),
    "refuse": Kind(of_redis=refuse),
    "readonly": Kind(of_redis=readonly),
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
    victim, happen = (REDIS, kind.of_redis) if kind.of_redis is not None else (NEWCOMER, kind.of_crawl)
    assert happen is not None
    if not world.is_free(victim):
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


def _mend_link(world: World, node: Node, seconds: float) -> None:
    world.later(seconds, node.link.mend, lambda: world.release(node.name))


def _now_ms() -> int:
    return round(time.time() * 1000)
