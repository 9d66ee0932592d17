"""`scrapy frontier repair`: takes damaged partitions back to their last sound state, after showing the loss.

Each manifest names an earlier one that was certainly on the disk. Redis still has everything after that, because
inboxes are trimmed one durable point late. So after a power failure, a partition goes back to that manifest in a new
epoch, and nothing is lost. If even confirmed data is gone, the number of lost URLs is shown first.

A damaged partition has no owner, and its next owner checks all of its files before claiming it. A partition that has an
owner is left alone, because the owner would continue to write in its own epoch.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.commands.result import Result
from bigcrawl.commands.steering.delete import is_confirmed
from bigcrawl.drum.files import DiskFiles
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.partition.directory import last_epoch, sound_manifest, verify_newest
from bigcrawl.scheduler.partition.fold.admission import PartitionLimits
from bigcrawl.scheduler.partition.partition import Partition
from bigcrawl.scheduler.records.inbox_entry import BATCH
from bigcrawl.scheduler.records.queued_url import BatchFormatError, decode_batch
from bigcrawl.views.damage import damage_of, missing_files
from bigcrawl.views.opened_crawl import open_crawl, server_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.scheduler.partition.manifest import Manifest
    from bigcrawl.views.opened_crawl import OpenedCrawl


def verify(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Read all files of the crawl and list damaged ones; the exit status is 1 if there are any."""
    damaged = [*damage_of(config), *missing_files(config)]
    text = "\n".join(damaged) if damaged else f"crawl {config.crawl.name}: every file is sound"
    return Result({"damaged": damaged}, text, 1 if damaged else 0)


_ENTRIES_AT_ONCE = 256


class RepairPlan(NamedTuple):
    """How one damaged partition would be repaired.

    Attributes:
        damage: a line for each damaged file.
        refusal: why it cannot be repaired; empty if it can.
        manifest: the number of the manifest to go back to.
        again: how many URLs are read again from the inbox.
        lost: upper bound on URLs that neither that manifest nor the inbox has.
    """

    partition: int
    damage: tuple[str, ...]
    refusal: str = ""
    manifest: int = 0
    again: int = 0
    lost: int = 0


def repair_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def repair(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """List damaged files and the URLs that a repair would lose, and repair after a confirmation."""
    with server_of(config) as server:
        plans, others = asyncio.run(_plan_repairs(config, server))
        lines = [line for plan in plans for line in _plan_lines(plan)] + [
            f"not repaired here: {line}" for line in others
        ]
        able = [plan for plan in plans if not plan.refusal]
        if able and not opts.yes:
            question = "\n".join([*lines, f"repair {len(able)} partitions? [y/N] "])
            if not is_confirmed(question):
                raise ConfigError("nothing was repaired: answer y, or give --yes")
        asyncio.run(_carry_out(config, server, able))
    left = len(plans) - len(able) + len(others)
    data = {
        "repaired": [plan.partition for plan in able],
        "plans": [p._asdict() for p in plans],
        "other_damage": others,
    }
    lines += [f"repaired: partition {plan.partition}" for plan in able]
    return Result(data, "\n".join(lines or [f"crawl {config.crawl.name}: every file is sound"]), 1 if left else 0)


async def _plan_repairs(config: Config, server: str) -> tuple[list[RepairPlan], list[str]]:
    damage = await asyncio.to_thread(lambda: list(damage_of(config)))
    async with open_crawl(config, server) as crawl:
        plans, left = [], damage
        for number in range(crawl.partitions):
            problems = await asyncio.to_thread(verify_newest, crawl.directory(number))
            if problems:
                said = tuple(map(str, problems))
                plans.append(await _plan_of(crawl, number, said))
                below = f"{crawl.directory(number)}/"
                left = [line for line in left if line not in said and not line.startswith(f"{below}e")]
        return plans, left


async def _plan_of(crawl: OpenedCrawl, number: int, damage: tuple[str, ...]) -> RepairPlan:
    [view] = await crawl.client.run([scripts.look_partition(crawl.keys(number))])
    directory = crawl.directory(number)
    if view.node and view.lease_left_ms > 0:
        return RepairPlan(
            number, damage, f"node {view.node} owns it; drain that node, or wait until it meets the damage"
        )
    if crawl.config.store.url:
        return RepairPlan(number, damage, f"the store has its last point: move {directory} away, and a node fetches it")
    manifest = await asyncio.to_thread(sound_manifest, directory, DiskFiles())
    if manifest is None:
        remedy = "restore its directory and Redis from one backup, or start the crawl again"
        return RepairPlan(number, damage, f"no earlier state is sound: {remedy}")
    again = await _waiting_urls(crawl, number, manifest)
    lost = max(0, view.count("appended_urls") - manifest.folded_urls - again)
    return RepairPlan(number, damage, "", manifest.number, again, lost)


async def _waiting_urls(crawl: OpenedCrawl, number: int, manifest: Manifest) -> int:
    inbox, last, urls = crawl.keys(number).inbox, manifest.inbox_id, 0
    while entries := await crawl.client.command("XRANGE", inbox, "(" + last, "+", "COUNT", _ENTRIES_AT_ONCE):
        for _, fields in entries:
            urls += _urls_in(dict(pairs_of(fields)).get(BATCH, b""))
        last = entries[-1][0].decode()
    return urls


def _urls_in(batch: bytes) -> int:
    try:
        return len(decode_batch(batch)) if batch else 0
    except BatchFormatError:
        return 0


async def _carry_out(config: Config, server: str, plans: Sequence[RepairPlan]) -> None:
    async with open_crawl(config, server) as crawl:
        for plan in plans:
            await asyncio.to_thread(_fall_back, crawl, plan.partition)
            await crawl.client.command("HSET", crawl.keys(plan.partition).state, "damaged", "0")


def _fall_back(crawl: OpenedCrawl, number: int) -> None:
    """Return a partition to its last sound manifest, in a new epoch above all others, and make that durable."""
    frontier = crawl.config.frontier
    limits = PartitionLimits(priority_bias=frontier.priority_bias, front_queues=frontier.front_queues)
    directory = crawl.directory(number)
    Partition.open(directory, last_epoch(directory) + 1, limits, fall_back=True).committed.make_durable()


def _plan_lines(plan: RepairPlan) -> list[str]:
    lines = list(plan.damage)
    if plan.refusal:
        return [*lines, f"partition {plan.partition} cannot be repaired: {plan.refusal}"]
    loss = "nothing is lost" if not plan.lost else f"up to {plan.lost:,} URLs are lost until pages link to them again"
    told = f"goes back to manifest {plan.manifest}; {plan.again:,} URLs are read again from its inbox, {loss}"
    return [*lines, f"partition {plan.partition} {told}"]
