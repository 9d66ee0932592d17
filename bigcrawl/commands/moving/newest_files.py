"""Where the newest files of a partition are: in the state directory, or in the store."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Final

from bigcrawl.drum.files import DiskFiles
from bigcrawl.exceptions import CorruptionError, TransientStoreError
from bigcrawl.scheduler.partition.copies import newest_of, put_back
from bigcrawl.store.objects import Objects
from bigcrawl.store.series import PointSeries

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bigcrawl.commands.opened_crawl import OpenedCrawl

_TRIES: Final = 2


def newest_files(
    crawl: OpenedCrawl, partition: int, place: Path, is_wanted: Callable[[str], bool] | None = None
) -> Path:
    """Return a directory that has the newest files of a partition, as a partition's directory has them.

    It is that of the crawl, unless the store has a newer point. The files of that are fetched.

    Args:
        crawl: the crawl.
        partition: the number of the partition.
        place: where files of the store are put, below `fetched`. The caller deletes it.
        is_wanted: whether a file of this name is fetched, besides the manifest; all by default.

    An owner deletes what its two newest points do not need, also while it is read here. If there is a newer point when
    an object is missing, that one is read instead.

    Raises:
        CorruptionError: a manifest, or an object of the store, is damaged.
        TransientStoreError: the disk or the store failed, or points are replaced faster than they can be read.
    """
    directory, files = crawl.directory(partition), DiskFiles()
    if not crawl.config.store.url:
        return directory
    series = PointSeries(Objects(crawl.config.store.url), f"{crawl.config.crawl.name}/p{partition:04d}")
    last = series.last_name()
    for _ in range(_TRIES):
        try:
            stored, local = series.find_newest(), newest_of(directory, files)
            if stored is None or (local is not None and local >= stored):
                return directory
            fetched = place / "fetched"
            shutil.rmtree(fetched, ignore_errors=True)
            put_back(fetched, stored[0], files, partial(series.fetch, is_wanted=is_wanted))
        except CorruptionError:
            if last == (last := series.last_name()):
                raise
        else:
            return fetched
    raise TransientStoreError(
        f"the points of partition {partition} in {crawl.config.store.url} are replaced faster than they can be read: "
        f"call again, while the crawl pauses if need be (scrapy frontier pause)"
    )
