"""Where the newest files of a partition are: in the state directory, or in the store."""

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
from bigcrawl.scheduler.partition.copies import newest_of, put_back
from bigcrawl.scheduler.partition.reader import UNTOUCHED, read_partition
from bigcrawl.scheduler.partition.tables import KINDS
from bigcrawl.scheduler.queues.unrunnable import PREFIX as UNRUNNABLE
from bigcrawl.store.objects import Objects
from bigcrawl.store.series import PointSeries
from bigcrawl.warc.files import locked_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bigcrawl.commands.opened_crawl import OpenedCrawl
    from bigcrawl.scheduler.partition.reader import UrlOnDisk

REMEDY: Final = "call it on a machine that has them, or with the crawl's BIGCRAWL_STORE_URL"
_LOOKED_AT: Final = tuple(f"{KINDS[table].prefix}-" for table in ("seen", "plds", "ends", "traps", "visits", "samples"))
_TRIES: Final = 2
_PREFIX: Final = "export-"


class FilesToRead(NamedTuple):
    """The newest files of a partition, for a look at them.

    Attributes:
        directory: has them, as a partition's directory does.
        url: of the store that they are from; empty for those of the state directory.
    """

    directory: Path
    url: str


def said_of_files(files: FilesToRead, *, has_any: bool) -> dict[str, Any]:
    """Return what was read of a partition, for programs: its directory, or the store; neither without files."""
    directory = str(files.directory) if has_any and not files.url else None
    return {"files": {"directory": directory, "store": files.url or None}}


def is_looked_at(name: str) -> bool:
    """Whether a file is of a table that `scheduler.partition.reader` asks about a URL or PLD, or of unrunnable URLs."""
    return name.startswith((*_LOOKED_AT, UNRUNNABLE))


async def read_disk(crawl: OpenedCrawl, partition: int, directory: Path, key: int, pld_key: int) -> UrlOnDisk | None:
    """Return what a partition's files say about a URL; `UNTOUCHED` before its first step, None if they are elsewhere.

    Raises: as `read_partition`.
    """
    found = read_partition(directory, key, pld_key)
    if found is not None:
        return found
    [view] = await crawl.client.run([scripts.look_partition(crawl.keys(partition))])
    return None if view.is_begun else UNTOUCHED  # not even by now


@contextmanager
def files_to_read(
    crawl: OpenedCrawl, partition: int, is_wanted: Callable[[str], bool] | None = None
) -> Iterator[FilesToRead]:
    """Find the newest files of a partition as `newest_files` does. What is fetched is deleted after the block.

    Nothing is written unless the store has newer ones, so whoever may read the files may call this.
    """
    with ExitStack() as ending:
        make_place = lambda: ending.enter_context(place_for_links(crawl.config.crawl.crawl_dir))  # noqa: E731
        found = newest_files(crawl, partition, make_place, is_wanted)
        yield FilesToRead(found, "" if found == crawl.directory(partition) else crawl.config.store.url or "")


def newest_files(
    crawl: OpenedCrawl, partition: int, make_place: Callable[[], Path], is_wanted: Callable[[str], bool] | None = None
) -> Path:
    """Return a directory that has the newest files of a partition, as a partition's directory has them.

    It is that of the crawl, unless the store has a newer point. The files of that are fetched.

    Args:
        crawl: the crawl.
        partition: the number of the partition.
        make_place: returns where files of the store are put, below `fetched`; called if there are any. The caller
            deletes it.
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
            fetched = make_place() / "fetched"
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


@contextmanager
def place_for_links(crawl_dir: Path) -> Iterator[Path]:
    """Make a directory for links on the file system of the crawl's files; delete those of killed exports.

    Raises:
        TransientStoreError: the disk refuses, or the directory of the crawl is somebody else's.
    """
    try:
        make_private_directory(crawl_dir)
        for left in crawl_dir.glob(f"{_PREFIX}*"):
            with locked_directory(left) as is_ours:
                if is_ours:
                    shutil.rmtree(left, ignore_errors=True)
        place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=crawl_dir))
    except OSError as error:
        raise TransientStoreError(
            f"{crawl_dir} cannot be written, where files are kept for a moment: {error.strerror or error}"
        ) from error
    try:
        with locked_directory(place):
            yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
