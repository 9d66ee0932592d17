"""`scrapy frontier warc repair`: cut damaged WARC files back to the records before the damage, and index them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.commands.pages.files import FULL, files_of
from bigcrawl.commands.result import Result
from bigcrawl.exceptions import TransientStoreError
from bigcrawl.page_index.index_files import CDXJ, index_file, remove_indexes
from bigcrawl.warc.files import OPEN_SUFFIX, OsFiles, locked
from bigcrawl.warc.recovery import recover_file
from bigcrawl.warc.verification import verify

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.config import Config


def repair_files(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Repair WARC files that are damaged: what a start does with a file whose writer died, and an index after it.

    Whole records whose digest is wrong are left: there is nothing to cut. So are files that others are at work on.

    Raises:
        ConfigError: a file is not there.
        TransientStoreError: the disk is full; the file is as it was, or ends in ``.open`` and is repaired by the next
            start.
    """
    files, kinds = OsFiles(config.crawl.warc_mode), config.crawl.warc_indexes or (CDXJ,)
    repaired: list[dict[str, Any]] = []
    left: list[str] = []
    for path in files_of(config, words):
        try:
            if verify(path)[1] is None:
                continue
            opened, problem = _opened(path, files)
            if problem:
                left.append(problem)
                continue
            found = recover_file(opened, remove_indexes=remove_indexes, files=files)
            if found is None:
                left.append(f"{opened}: somebody else has it open")
                continue
            repaired.append({"file": str(path), "records": found.kept_records, "cut_bytes": found.cut_bytes})
            if found.kept_records:
                index_file(found.path, kinds, config.crawl.warc_mode)
                if wrong := verify(found.path)[1]:
                    left.append(f"{path}: {wrong}; bring back a copy of it")
        except FileNotFoundError:  # an uploader has moved it
            continue
        except OSError as error:
            problem = f"{path} cannot be repaired: {error.strerror or error}"
            if error.errno in FULL:
                raise TransientStoreError(problem) from error
            left.append(problem if path.exists() else f"{problem}; it ends in {OPEN_SUFFIX} now, for the next start")
    lines = [f"{one['file']}: {one['records']:,} records kept, {one['cut_bytes']:,} bytes cut off" for one in repaired]
    lines += left
    lines.append(f"{len(repaired):,} files repaired; what was cut off and is no blank is beside them, as .damaged")
    return Result({"repaired": repaired, "left": left}, "\n".join(lines), 1 if left else 0)


def _opened(path: Path, files: OsFiles) -> tuple[Path, str]:
    """Give a file back its ``.open``; return that name, and why it has not got it, if it has not.

    Raises:
        OSError: the disk refuses.
    """
    opened = path.with_name(path.name + OPEN_SUFFIX)
    with locked(path) as is_ours:
        if not is_ours:
            return opened, f"{path}: somebody else is at work on it, or it is gone; call again"
        if opened.exists():
            return opened, f"{path}: {opened.name} is there, too; move one of the two away"
        files.rename(path, opened)
    return opened, ""
