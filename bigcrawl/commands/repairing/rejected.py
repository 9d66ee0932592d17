"""`scrapy frontier rejected [--retry | --drop]`: inbox entries that could not be read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.crawl.survey import FinishCheck
from bigcrawl.scheduler.partition.fold.rejected import rejected_entries
from bigcrawl.scheduler.queues.epoch_directory import REJECTED

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.scheduler.partition.fold.rejected import Rejected


def rejected(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """List rejected entries; read again those that can be read by now, or drop all.

    The exit status is 1 while there are any.

    Raises:
        ConfigError: there is no such crawl here.
        TransientStoreError: Redis does not answer; all or some may have been done.
    """
    if not config.crawl.crawl_dir.is_dir():
        raise ConfigError(
            f"{config.crawl.crawl_dir} is not there: no crawl {config.crawl.name!r}; see BIGCRAWL_STATE_DIR"
        )
    entries = list(rejected_entries(config.crawl.crawl_dir))
    acted = [entry for entry in entries if opts.drop or (opts.retry and not entry.problem)]
    if acted:
        with server_of(config) as server:
            asyncio.run(_act(config, server, acted, retry=opts.retry))
    did = "dropped" if opts.drop else "taken in again"
    lines = [f"{did if entry in acted else entry.problem or 'can be read'}: {entry.path}" for entry in entries]
    data: dict[str, Any] = {
        "rejected": [{"path": str(entry.path), "problem": entry.problem} for entry in entries if entry not in acted],
        "done": [str(entry.path) for entry in acted],
    }
    return Result(data, "\n".join(lines) or "there are no rejected entries", int(len(acted) < len(entries)))


async def _act(config: Config, server: str, entries: Sequence[Rejected], *, retry: bool) -> None:
    async with opened(config, server) as crawl:
        for entry in entries:
            # To the inbox first: an entry that is there twice brings URLs that have been seen.
            if retry:
                await crawl.tell_owner(entry.partition, entry.field, entry.path.read_bytes())
            entry.path.unlink(missing_ok=True)
        for partition in {entry.partition for entry in entries}:
            left = sum(1 for _ in (crawl.directory(partition) / REJECTED).iterdir())
            # The owner counts again with its next step; there may be none for long.
            await crawl.client.command("HSET", crawl.keys(partition).state, "rejected", left)
        if retry:
            await FinishCheck(crawl.client, crawl.config.crawl.name, crawl.partitions).take_back()
