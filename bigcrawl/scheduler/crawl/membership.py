"""Which nodes are alive, which partitions this one should own, and which nodes are provably dead.

A node holds a lock file in the crawl's directory while it lives. Its *token* names the machine's boot and the node.
Another node of the same boot that finds the lock free knows for certain that the node is dead, and need not wait for
the lease. Source: UbiCrawler §2, §4.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import itertools
import json
import logging
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from bigcrawl import __version__
from bigcrawl.clock import boot_id
from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.politeness.robots_policy import agent_token
from bigcrawl.private_files import FILE_MODE, disk_error, make_private, make_private_directory, replaced_error
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.redisdb.reply_errors import RedisRefusedError
from bigcrawl.redisdb.scripts import NOTHING_MADE, NodesMade
from bigcrawl.scheduler.crawl.alike import (
    ARGUMENTS,
    BEATS,
    FIELD,
    LEASES,
    SINCE,
    SPIDER,
    VERSION,
    joined_before,
    refusal,
)
from bigcrawl.scheduler.crawl.assignment import LiveNode, assign, read_ranges, write_ranges
from bigcrawl.scheduler.crawl.in_process import UNKNOWN, InProcess, read_in_process
from bigcrawl.scheduler.crawl.measured_capacity import MeasuredCapacity
from bigcrawl.scheduler.crawl.node_reports import read_report

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient
    from bigcrawl.scheduler.crawl.node_resources import NodeResources

logger = logging.getLogger(__name__)

LOCK_AGE_S = 600
MAY_REPEAT = "may_repeat"  # in the crawl record: upper bound of URLs in process on nodes, or at their death
_PLACE = ("name", "capacity", "owned")
_LATE = "late_ms"
LOOK_S = 0.5


class Membership:
    """This node among the nodes of its crawl.

    `gone` counts the heartbeats of this node that found other nodes gone since the one before. `made_by_all` is what
    all nodes of the crawl had made by the last heartbeat, and `gap_ms` the time between the answers to the last two.
    """

    def __init__(self, config: Config, node: str, in_process: InProcess | None = None) -> None:
        self._keys = CrawlKeys(config.crawl.name)
        self._partitions = config.crawl.partitions
        self._lease_ms = config.frontier.lease_ms
        self._in_process_max = config.frontier.in_process_max
        self._directory = config.crawl.crawl_dir / "nodes"
        self._lock_fd: int | None = None
        self._slot_fd: int | None = None
        self._machine = config.crawl.machine
        self._name = node
        self._capacity = MeasuredCapacity(config.crawl.capacity)
        self._moves_by_load = config.crawl.capacity_measured
        self._resources = _resources_of(config)
        self._mine: frozenset[int] = frozenset()
        self._assigned_by: dict[str, tuple[Any, ...]] = {}
        self._ranges: tuple[Collection[int], str] = (frozenset(), "")
        self._in_process = in_process
        self.node = node
        self.token = f"{boot_id()}:{node}"
        self.reports: dict[str, dict[str, Any]] = {}
        self.gone = 0
        # Nodes share parsed robots.txt rules, which apply to one user agent.
        alike = {**config.alike, "USER_AGENT": agent_token(config.politeness.agent), LEASES: "by block"}
        if config.crawl.spider:  # stored requests name its methods
            alike[SPIDER] = config.crawl.spider
        self._alike: dict[str, Any] = {FIELD: alike, VERSION: __version__}
        if config.crawl.arguments is not None:
            self._alike[ARGUMENTS] = dict(config.crawl.arguments)
        self._report: dict[str, Any] = {}
        self.made_by_all = NOTHING_MADE
        self._beats = 0
        self._since_ms = 0
        self._heard_ms = 0  # when this node last received others' heartbeats
        self.gap_ms = 0
        self._patient_until_ms = 0

    def __repr__(self) -> str:
        return f"<Membership {self.node} among {sorted(self.reports)}>"

    @property
    def is_alone(self) -> bool:
        return self.reports.keys() <= {self.node}

    def lock(self) -> None:
        """Take the lock file that proves this node is alive.

        The file is locked before it gets its name, so that no other node can lock it first. Raises ConfigError if the
        state directory cannot be written.
        """
        if self._resources is not None:
            self._resources.begin()
        try:
            make_private_directory(self._directory)
            make_private(self._directory.parent)  # an older crawl's may be readable to others
            unnamed = self._path(self.node).with_suffix(".new")
            self._lock_fd = os.open(unnamed, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, FILE_MODE)
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._in_process is not None:
                self._in_process.open(self._lock_fd)
            unnamed.rename(self._path(self.node))
            self._take_slot()
        except OSError as error:
            what = f"cannot write the state directory {self._directory}"
            raise disk_error(what, error, "BIGCRAWL_STATE_DIR") from error

    def require_place(self) -> None:
        """Raise TransientStoreError unless the state directory still has this node's files.

        A missing lock file proves nothing: where machines do not share locks, a node of another machine removes it,
        because it takes this node for dead.
        """
        if self._lock_fd is not None and not (self._path(self.node).exists() or self._has_slot()):
            raise replaced_error(self._directory.parent)

    def _has_slot(self) -> bool:
        if self._slot_fd is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._slot_fd), os.stat(self._slot_path(self._name)))  # noqa: PTH116
        except OSError:
            return False

    def _take_slot(self) -> None:
        """Take the machine's first name without a live process, so that a restarted node gets its old name."""
        for slot in itertools.count():
            path = self._slot_path(f"{self._machine}-{slot}")
            fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, FILE_MODE)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                continue
            self._slot_fd, self._name = fd, f"{self._machine}-{slot}"
            return

    def unlock(self, *, left: bool = True) -> None:
        """Release the lock file, because the node ends.

        If the node has not `left` Redis completely, the file stays, unlocked, and proves the death to the next node.
        """
        if self._lock_fd is not None:
            if left:
                with contextlib.suppress(OSError):
                    self._path(self.node).unlink()
            fcntl.flock(self._lock_fd, fcntl.LOCK_UN)  # closing is not enough: a map of the file has its own descriptor
            os.close(self._lock_fd)
            self._lock_fd = None
        if self._slot_fd is not None:
            if left:
                with contextlib.suppress(OSError):
                    self._slot_path(self._name).unlink()
            os.close(self._slot_fd)
            self._slot_fd = None

    async def beat(
        self,
        client: RedisClient,
        report: dict[str, Any],
        owned: Collection[int] = (),
        late_ms: float = 0,
        made: NodesMade = NOTHING_MADE,
        beside: Sequence[scripts.Call[Any]] = (),
    ) -> list[Any]:
        """Send this node's heartbeat, and learn which other nodes live, except provably dead ones.

        `report` is for people who look at the crawl. `late_ms` is how long this node's hosts wait after they are due;
        with BIGCRAWL_CAPACITY_MEASURED, partitions move by it. `made` is what it made since its start. `beside` are
        further calls, in the same round trip; return their replies or errors.

        Raises:
            ConfigError: a node that joined earlier has different settings, or is of another release.
            TransientStoreError: Redis is unreachable.
        """
        self._beats += 1
        self._since_ms = self._since_ms or client.now_ms()
        if self._resources is not None:
            self._resources.refresh(client.now_ms())
        report = {**report, _LATE: round(late_ms)}
        self._report = {**report, **self._place(owned), **self._alike, SINCE: self._since_ms, BEATS: self._beats}
        text = json.dumps(self._report)
        is_first = not self._heard_ms
        call = scripts.beat_node(self._keys, self.node, text, self._lease_ms, made, is_first=is_first)
        answer, *replies = await client.run_each([call, *beside])
        if isinstance(answer, BigcrawlError):
            raise answer
        texts, self.made_by_all = answer
        before, self.reports = self.reports, await self._living(client, texts)
        if texts.get(self.node) == text:
            self.reports[self.node] = self._report
        self.gone += not before.keys() <= self.reports.keys()
        self._record_contact(client.now_ms())
        if self._moves_by_load:
            others = [each.get(_LATE, 0) for node, each in self.reports.items() if node != self.node]
            self._capacity.update(late_ms, others, client.now_ms())
        for node, error in self._refusals(self.reports).items():
            if joined_before(self.reports[node], node, self._report, self.node):
                raise error
        return replies

    def _record_contact(self, now_ms: int) -> None:
        self.gap_ms = now_ms - self._heard_ms if self._heard_ms else 0
        if self._heard_ms and now_ms - self._heard_ms >= self._lease_ms / 2:
            self._patient_until_ms = now_ms + self._lease_ms // 3
        self._heard_ms = now_ms

    @property
    def lost_contact_recently(self) -> bool:
        """Whether nodes that seem dead may just be late, because this one lost contact recently too."""
        return self._heard_ms < self._patient_until_ms

    async def wait_for_alike(self, client: RedisClient) -> None:
        """Before joining, check that live nodes have the same settings and are of the same release.

        A node that differs may be dead. So the error is raised only if it sends another heartbeat before its lease
        ends.
        """
        seen: dict[str, int] = {}
        while refusals := self._refusals(reports := await self._others(client)):
            for node, error in refusals.items():
                beats = reports[node].get(BEATS, 0)
                if seen.setdefault(node, beats) != beats:
                    raise error
            await asyncio.sleep(LOOK_S)

    async def others(self, client: RedisClient) -> set[str]:
        return set(await self._others(client))

    def is_any_locked(self) -> bool:
        """Whether any node that uses this directory is alive, whatever Redis says."""
        return not all(_is_free(path) for path in self._directory.glob("*.lock"))

    def is_alone_here(self) -> bool:
        """Whether no other node that uses this directory is alive, whatever Redis says."""
        return all(_is_free(path) for path in self._directory.glob("*.lock") if path.stem != self.node)

    def _refusals(self, reports: dict[str, dict[str, Any]]) -> dict[str, ConfigError]:
        others = {node: report for node, report in reports.items() if node != self.node}
        found = {node: refusal(node, report, self._alike) for node, report in others.items()}
        return {node: error for node, error in found.items() if error is not None}

    async def _others(self, client: RedisClient) -> dict[str, dict[str, Any]]:
        [answer] = await client.run([scripts.beat_node(self._keys, self.node, "", self._lease_ms, leave=True)])
        return await self._living(client, answer.reports)

    async def _living(self, client: RedisClient, texts: dict[str, str]) -> dict[str, dict[str, Any]]:
        reports = {node: _report_of(node, text) for node, text in texts.items()}
        others = {node: report.get("token", "") for node, report in reports.items() if node != self.node}
        if not others:
            return reports
        # In a thread, so that a hung disk does not stop the loop.
        dead = await asyncio.to_thread(lambda: [node for node, token in others.items() if self.is_dead(token)])
        for node in dead:
            del reports[node]
        if dead:
            await client.run([scripts.beat_node(self._keys, node, "", self._lease_ms, leave=True) for node in dead])
        return reports

    async def record_taking(self, client: RedisClient) -> None:
        """Record that this node now takes URLs. If it dies, its URLs in process are fetched again."""
        await self._count(client, self._in_process_max)

    async def record_taken_last(self, client: RedisClient, held: int) -> None:
        """Record that this node takes no more URLs; `held` URLs would be fetched again if it died."""
        await self._count(client, min(0, held - self._in_process_max))

    async def _count(self, client: RedisClient, urls: int) -> None:
        # A full Redis refuses this, but nodes must be able to join and leave it.
        with contextlib.suppress(RedisRefusedError):
            await client.command("HINCRBY", self._keys.crawl, MAY_REPEAT, urls)

    async def leave(self, client: RedisClient, made: NodesMade = NOTHING_MADE) -> None:
        [answer] = await client.run([scripts.beat_node(self._keys, self.node, "", self._lease_ms, made, leave=True)])
        self.made_by_all = answer.made

    def _place(self, owned: Collection[int]) -> dict[str, Any]:
        if self._ranges[0] != owned:
            self._ranges = frozenset(owned), write_ranges(owned)
        measured = 1.0 if self._resources is None else self._resources.value
        capacity = max(round(self._capacity.value * measured, 4), 0.0001)
        return {"name": self._name, "capacity": capacity, "owned": self._ranges[1]}

    def wanted(self, owned: Collection[int]) -> frozenset[int]:
        """Return the partitions that this node should own, given the reports of the live nodes."""
        reports = {**self.reports, self.node: self._place(owned)}
        places = {node: tuple(map(report.get, _PLACE)) for node, report in reports.items()}
        if places != self._assigned_by:
            members = {node: _member_of(node, report, self._partitions) for node, report in reports.items()}
            owners = enumerate(assign(self._partitions, members))
            self._mine, self._assigned_by = frozenset(at for at, owner in owners if owner == self.node), places
        return self._mine

    def is_dead(self, token: str) -> bool:
        """Whether the node of this token is provably dead: same boot, same directory, its lock free."""
        boot, _, node = token.partition(":")
        if not boot or not node or node == self.node or boot != boot_id():
            return False
        return _is_free(self._path(node))

    def is_here(self, token: str) -> bool:
        """Whether the node of this token has its lock: same boot, same directory, live process."""
        boot, _, node = token.partition(":")
        if not boot or not node or boot != boot_id():
            return False
        path = self._path(node)
        return path.exists() and not _is_free(path)

    def remove_locks(self, named: Collection[str]) -> None:
        """Remove the lock files of dead nodes, except those `named` in Redis, where they still prove a death."""
        kept = {self.node, *self.reports, *named}
        for path in self._directory.glob("*.lock"):
            with contextlib.suppress(OSError):
                # A node of an earlier release locks its file after it has made it.
                if path.stem not in kept and time.time() - path.stat().st_mtime > LOCK_AGE_S and _is_free(path):
                    path.unlink()

    def in_process_of(self, token: str) -> dict[int, str] | None:
        """Return the URLs that the token's node has or had in process, by partition; None if unknown here."""
        boot, _, node = token.partition(":")
        return read_in_process(self._path(node)) if node and boot and boot == boot_id() else None

    def _path(self, node: str) -> Path:
        return self._directory / f"{node}.lock"

    def _slot_path(self, name: str) -> Path:
        return self._directory / f"{name}.slot"


def _resources_of(config: Config) -> NodeResources | None:
    if config.crawl.capacity_from == "setting":
        return None
    from bigcrawl.scheduler.crawl.node_resources import NodeResources

    return NodeResources.of_config(config.crawl)


def _report_of(node: str, text: str) -> dict[str, Any]:
    try:
        return read_report(text)
    except ValueError as error:
        logger.warning("the report of node %(node)s is ignored: %(error)s", {"node": node, "error": error})
        return {}


def _member_of(node: str, report: dict[str, Any], partitions: int) -> LiveNode:
    name, capacity = report.get("name", node), report.get("capacity", 1.0)
    return LiveNode(name, capacity, read_ranges(report.get("owned", "")).intersection(range(partitions)))


class LastOwner(NamedTuple):
    """The known facts about the owner of a partition that this node wants.

    Attributes:
        is_dead: whether its death is certain.
        is_here: whether its process lives on this machine. If its lease is over, it hangs or is stopped.
        in_process: the URLs that it had in process, by partition; None if unknown.
    """

    token: str
    is_dead: bool
    is_here: bool
    in_process: dict[int, str] | None

    @classmethod
    def of(cls, token: str, membership: Membership) -> Self:
        """Return the known facts. The lock is checked before the record is read, so that the record is final."""
        is_dead = membership.is_dead(token)
        is_here = not is_dead and membership.is_here(token)
        return cls(token, is_dead, is_here, membership.in_process_of(token))

    def in_process_of(self, partition: int) -> str:
        return UNKNOWN if self.in_process is None else self.in_process.get(partition, "")


def _is_free(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
