"""URLs that a crawl has set aside because they kill their process, and inbox entries that could not be read."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from bigcrawl.clock import time_text
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.partition.fold.rejected import rejected_entries
from bigcrawl.scheduler.queues.epoch_directory import REJECTED
from bigcrawl.scheduler.records.dead_letters import DeadLetter, unpack_letter
from bigcrawl.scheduler.records.inbox_entry import OUTCOMES
from bigcrawl.scheduler.records.outcomes import AGAIN, pack_outcomes
from bigcrawl.scheduler.records.queued_url import encode_batch
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config
    from bigcrawl.scheduler.partition.fold.rejected import RejectedEntries
    from bigcrawl.views.opened_crawl import OpenedCrawl

Letters = dict[int, list[DeadLetter]]


def dead_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="every dead letter")
    rejected_options(parser)


def rejected_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--retry", action="store_true", help="queue dead letters again, or read rejected entries again")
    group.add_argument("--drop", action="store_true", help="remove them from the list; their URLs stay unfetched")


def dead(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """List dead letters, all or those of some URLs; queue them again, or drop them."""
    acts = opts.retry or opts.drop
    if acts and bool(words) == opts.all:
        raise ConfigError("--retry and --drop need either URLs, or --all for every dead letter")
    letters, others = in_crawl(config, _find_letters, words, retry=opts.retry, drop=opts.drop)
    flat = sorted((letter for there in letters.values() for letter in there), key=lambda letter: letter.died_ms)
    did = "queued again: " if opts.retry else "dropped: " if opts.drop else ""
    lines = [did + _letter_text(letter) for letter in flat] + [f"no dead letter: {url}" for url in others]
    data = {
        "dead": [_letter_data(letter) for letter in flat],
        "done": "retry" if opts.retry else "drop" if opts.drop else "",
        "no_dead_letters": others,
    }
    return Result(data, "\n".join(lines) or "there are no dead letters", 1 if others else 0)


async def _find_letters(
    crawl: OpenedCrawl, words: Sequence[str], *, retry: bool, drop: bool
) -> tuple[Letters, list[str]]:
    places = [crawl.place_of(word) for word in words]
    letters = await read_letters(crawl, {place.partition for place in places} if places else range(crawl.partitions))
    others: list[str] = []
    if places:
        asked = {place.key for place in places}
        letters = {p: [letter for letter in there if letter.key in asked] for p, there in letters.items()}
        found = {letter.key for there in letters.values() for letter in there}
        others = [place.url for place in places if place.key not in found]
    if retry:
        await _queue_letters(crawl, letters)
    if retry or drop:
        await unbury(crawl, {p: [letter.key for letter in there] for p, there in letters.items()})
    return letters, others


async def read_letters(crawl: OpenedCrawl, partitions: set[int] | range) -> Letters:
    rows = await crawl.client.commands([("HGETALL", crawl.keys(partition).dead) for partition in partitions])
    return {
        partition: [unpack_letter(int(key), data) for key, data in pairs_of(row)]
        for partition, row in zip(partitions, rows, strict=True)
        if row
    }


async def unbury(crawl: OpenedCrawl, keys: dict[int, list[int]]) -> None:
    await crawl.client.run([scripts.unbury_urls(crawl.keys(p), there) for p, there in keys.items() if there])


async def _queue_letters(crawl: OpenedCrawl, letters: Letters) -> None:
    """Send an outcome AGAIN, and only then queue the original requests: sent later, it could hide their outcomes."""
    node = f"by-hand-{uuid.uuid4().hex[:8]}"
    for partition, there in letters.items():
        if there:
            outcomes = pack_outcomes((letter.key, AGAIN, 0) for letter in there)
            await crawl.send_to_owner(partition, OUTCOMES, outcomes)
            batch = encode_batch([letter.queued for letter in there])
            await crawl.client.run([scripts.append_batch(crawl.keys(partition), node, 1, 1, batch, len(there))])
            await crawl.record_arrivals([partition])
    if any(letters.values()):
        await crawl.unmark_finished()


def _letter_data(letter: DeadLetter) -> dict[str, Any]:
    return {"url": letter.url, "deaths": letter.deaths, "since": time_text(letter.died_ms)}


def _letter_text(letter: DeadLetter) -> str:
    return f"{letter.url}  (at {letter.deaths} deaths, since {time_text(letter.died_ms)})"


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
            await crawl.send_to_owner(entry.partition, entry.field, entry.path.read_bytes())
        entry.path.unlink(missing_ok=True)
    for partition in {entry.partition for entry in entries}:
        left = sum(1 for _ in (crawl.directory(partition) / REJECTED).iterdir())
        # The owner counts again only with its next step, which may be far off.
        await crawl.client.command("HSET", crawl.keys(partition).state, "rejected", left)
    if retry:
        await crawl.unmark_finished()
