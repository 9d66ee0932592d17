"""What the dashboard shows and no action of `scrapy frontier` prints: the history from a time on, room on disks."""

from __future__ import annotations

import asyncio
import bisect
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bigcrawl.commands.opened_crawl import opened, server_of
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.crawl.history import TIME_S, read_history

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.config import Config


def read_history_since(config: Config, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the samples of the crawl's history that are younger than `since`, Unix seconds; without it, all.

    Returns:
        columns as those of `read_history`.

    Raises:
        ConfigError: `since` is not a number, or there is no such crawl.
        TransientStoreError: Redis does not answer.
    """
    text = options.get("since", "0")
    try:
        since_s = float(text)
    except ValueError:
        raise ConfigError(f"since is {text[:40]!r}; must be Unix seconds") from None
    with server_of(config) as server:
        columns = asyncio.run(_history(config, server))
    first = bisect.bisect_right([time_s or 0.0 for time_s in columns[TIME_S]], since_s)
    return {name: values[first:] for name, values in columns.items()}


async def _history(config: Config, server: str) -> dict[str, list[float | None]]:
    async with opened(config, server) as crawl:
        return await read_history(crawl.client, config.crawl.name)


def read_disks(config: Config, _options: Mapping[str, str]) -> dict[str, Any]:
    """Return size and room, in bytes, of the disks of state directory and WARC files, as this machine has them.

    A disk that cannot be asked is left out.
    """
    places = {"state": config.crawl.state_dir, "warc": config.crawl.warc_dir}
    found = {}
    for name, path in places.items():
        if path is not None:
            with suppress(OSError):
                used = shutil.disk_usage(path)
                found[name] = {"size": used.total, "free": used.free}
    return {"disks": found}
