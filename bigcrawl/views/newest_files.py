"""Finds the newest files of a partition, in the state directory or in the store."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.drum.files import DiskFiles
from bigcrawl.exceptions import CorruptionError, TransientStoreError
from bigcrawl.private_files import make_private_directory
from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.partition.committed import newest_of, put_back
from bigcrawl.scheduler.partition.fold.feature import all_features
from bigcrawl.scheduler.partition.reader import UNTOUCHED, UrlOnDisk, read_partition
from bigcrawl.scheduler.partition.tables import KINDS
from bigcrawl.scheduler.queues.unrunnable import PREFIX as UNRUNNABLE
from bigcrawl.scheduler.records.inbox_entry import id_order
from bigcrawl.store.objects import ObjectStore
from bigcrawl.store.series import PointSeries
from bigcrawl.warc.files import locked_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bigcrawl.redisdb.scripts import PartitionView
    from bigcrawl.views.opened_crawl import OpenedCrawl

REMEDY: Final = "call it on a machine that has them, or with the crawl's BIGCRAWL_STORE_URL"
_TABLES: Final = (
    "seen",
    "plds",
    "ends",
    *(name for feature in all_features() for name in feature.explains_by),
)
_LOOKED_AT: Final = tuple(f"{KINDS[table].prefix}-" for table in _TABLES)
_TRIES: Final = 2
_PREFIX: Final = "export-"


class FilesToRead(NamedTuple):
    """A directory laid out like a partition's; the URL of the store if its files come from there, else ""."""

    directory: Path
    url: str


def files_data(files: FilesToRead, *, has_any: bool) -> dict[str, Any]:
    directory = str(files.directory) if has_any and not files.url else None
    return {"files": {"directory": directory, "store": files.url or None}}


def is_wanted_file(name: str) -> bool:
    """Return whether a file has unrunnable URLs, or a table that `scheduler.partition.reader` reads."""
    return name.startswith((*_LOOKED_AT, UNRUNNABLE))


async def read_view(crawl: OpenedCrawl, partition: int) -> PartitionView:
    """Return the state of a partition. Call this before looking for its files, as a first step may add them."""
    view: PartitionView
    [view] = await crawl.client.run([scripts.look_partition(crawl.keys(partition))])
    return view


async def begun_partitions(crawl: OpenedCrawl) -> list[int]:
    views = await crawl.client.run([scripts.look_partition(crawl.keys(number)) for number in range(crawl.partitions)])
    return [number for number, view in enumerate(views) if view.is_begun]


def read_disk(view: PartitionView, directory: Path, key: int, pld_key: int) -> UrlOnDisk | None:
    """Return a URL's state in a partition's files; `UNTOUCHED` before the first step, None without files."""
    found = read_partition(directory, key, pld_key)
    return UNTOUCHED if found is None and not view.is_begun else found


async def is_outdated(crawl: OpenedCrawl, partition: int, inbox_id: str) -> bool:
    """Return whether the inbox may have been trimmed beyond these files, so that all must be read again."""
    trimmed = await crawl.client.command("HGET", crawl.keys(partition).state, "trimmed")
    return bool(trimmed) and id_order(trimmed.decode().partition(" ")[0]) > id_order(inbox_id)


@contextmanager
def files_to_read(
    crawl: OpenedCrawl, partition: int, is_wanted: Callable[[str], bool] | None = None
) -> Iterator[FilesToRead]:
    """Yield a directory with a partition's newest files, as `newest_files` does; delete fetched files afterwards."""
    with ExitStack() as ending:
        make_place = lambda: ending.enter_context(place_for_links(crawl.config.crawl.crawl_dir))  # noqa: E731
        found = newest_files(crawl, partition, make_place, is_wanted)
        yield FilesToRead(found, "" if found == crawl.directory(partition) else crawl.config.store.url or "")


def newest_files(
    crawl: OpenedCrawl, partition: int, make_place: Callable[[], Path], is_wanted: Callable[[str], bool] | None = None
) -> Path:
    """Return a directory with the newest files of a partition, laid out like the partition's own.

    It is the partition's own directory, unless the store has a newer point. That point is fetched into the directory
    `make_place()`, which the caller deletes: always the manifest, and other files if `is_wanted` accepts their names.
    If the owner deletes the point meanwhile, the next one is fetched, at most `_TRIES` times.
    """
    directory, files = crawl.directory(partition), DiskFiles()
    if not crawl.config.store.url:
        return directory
    series = PointSeries(ObjectStore(crawl.config.store.url), f"{crawl.config.crawl.name}/p{partition:04d}")
    last = series.last_name()
    for _ in range(_TRIES):
        try:
            stored, local = series.find_newest(), newest_of(directory, files)
            if stored is None or (local is not None and local >= stored):
                return directory
            fetched = make_place() / "fetched"
            shutil.rmtree(fetched, ignore_errors=True)
            put_back(fetched, stored[0], files, partial(series.fetch, is_wanted=is_wanted))
        except CorruptionError:
            if last == (last := series.last_name()):
                raise
        else:
            return fetched
    raise TransientStoreError(
        f"the durable points of partition {partition} in {crawl.config.store.url} are replaced faster than "
        f"they can be read: try again, and if that fails, pause the crawl first (scrapy frontier pause)"
    )


@contextmanager
def place_for_links(crawl_dir: Path) -> Iterator[Path]:
    """Create a directory for links on the file system of the crawl's files; delete those of killed exports."""
    try:
        make_private_directory(crawl_dir)
        for left in crawl_dir.glob(f"{_PREFIX}*"):
            with locked_directory(left) as is_ours:
                if is_ours:
                    shutil.rmtree(left, ignore_errors=True)
        place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=crawl_dir))
    except OSError as error:
        raise TransientStoreError(
            f"{crawl_dir} cannot be written, the directory for temporary files: {error.strerror or error}"
        ) from error
    try:
        with locked_directory(place):
            yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
