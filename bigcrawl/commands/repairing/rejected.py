from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.commands.repairing.dead import add_verbs
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.partition.fold.rejected import rejected_entries
from bigcrawl.scheduler.queues.epoch_directory import REJECTED
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.scheduler.partition.fold.rejected import RejectedEntries
    from bigcrawl.views.opened_crawl import OpenedCrawl


def add_options(parser: argparse.ArgumentParser) -> None:
    add_verbs(parser)


def rejected(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """List rejected inbox entries; retry those that have become readable, or drop all."""
    if not config.crawl.crawl_dir.is_dir():
        raise ConfigError(
            f"{config.crawl.crawl_dir} does not exist: there is no crawl {config.crawl.name!r}; see BIGCRAWL_STATE_DIR"
        )
    entries = list(rejected_entries(config.crawl.crawl_dir))
    acted = [entry for entry in entries if opts.drop or (opts.retry and not entry.problem)]
    if acted:
        in_crawl(config, _retry_or_drop, acted, retry=opts.retry)
    did = "dropped" if opts.drop else "taken in again"
    lines = [f"{did if entry in acted else entry.problem or 'can be read'}: {entry.path}" for entry in entries]
    data: dict[str, Any] = {
        "rejected": [{"path": str(entry.path), "problem": entry.problem} for entry in entries if entry not in acted],
        "done": [str(entry.path) for entry in acted],
    }
    return Result(data, "\n".join(lines) or "there are no rejected entries", int(len(acted) < len(entries)))


async def _retry_or_drop(crawl: OpenedCrawl, entries: Sequence[RejectedEntries], *, retry: bool) -> None:
    for entry in entries:
        # Send before deleting: an entry that arrives twice does no harm, because its URLs have been seen.
        if retry:
            await crawl.tell_owner(entry.partition, entry.field, entry.path.read_bytes())
        entry.path.unlink(missing_ok=True)
    for partition in {entry.partition for entry in entries}:
        left = sum(1 for _ in (crawl.directory(partition) / REJECTED).iterdir())
        # The owner counts again only with its next step, which may be far off.
        await crawl.client.command("HSET", crawl.keys(partition).state, "rejected", left)
    if retry:
        await crawl.unmark_finished()
