"""The command `scrapy frontier wacz FILE`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.stored.files import source_files
from bigcrawl.warc.files import OPEN_SUFFIX
from bigcrawl_wacz.packing import pack

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

SUFFIXES: Final = (".warc.gz", ".warc")
"""Of files that readers of WACZ know."""


def wacz_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--title", default="", help="the title of the archive; default: the name of the crawl")


def wacz(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Pack stored pages into one file that replays: those of BIGCRAWL_SOURCE, or else of BIGCRAWL_WARC_DIR.

    Files that a running crawl still writes are left out. After an error, an earlier file is unchanged.
    """
    target = Path(words[0])
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise ConfigError(f"{target} is not a file in a directory that exists; name one, such as crawl.wacz")
    pattern = config.source.pattern or str(config.crawl.warc_dir or "")
    if not pattern:
        raise ConfigError("say where the pages are: -s BIGCRAWL_SOURCE='warc/*.warc.gz'")
    paths = _packable(source_files(pattern))
    still_open = sorted(str(one) for place in {path.parent for path in paths} for one in place.glob(f"*{OPEN_SUFFIX}"))
    try:
        packed = pack(paths, target, opts.title or config.crawl.name, config.crawl.warc_mode)
    except OSError as error:
        about = error.filename or target
        raise TransientStoreError(
            f"{about} cannot be read or written: {error.strerror or error}; a file of an earlier call is unchanged"
        ) from error
    data = {
        "file": str(target),
        "bytes": packed.size,
        "files": len(paths),
        "captures": packed.captures,
        "pages": packed.pages,
        "open": still_open,
        "damaged": packed.problems,
    }
    lines = [f"{problem}; the index has all others" for problem in packed.problems]
    if still_open:
        lines.append(
            f"{len(still_open):,} files are still being written, and left out, such as {still_open[0]}: call again "
            "when the crawl has ended"
        )
    lines.append(
        f"{target}: {packed.pages:,} pages, {packed.captures:,} captures in {len(paths):,} WARC files; "
        f"{packed.size:,} bytes"
    )
    return Result(data, "\n".join(lines), 1 if packed.problems else 0)


def _packable(paths: list[Path]) -> list[Path]:
    """Return the files; raise ConfigError if WACZ readers do not know a format, or two have the same name."""
    for path in paths:
        if not path.name.endswith(SUFFIXES):
            raise ConfigError(
                f"{path} cannot be in a WACZ file, only {' or '.join(SUFFIXES)}: `warcio recompress OLD NEW` makes "
                "one of it"
            )
    name, times = Counter(path.name for path in paths).most_common(1)[0]
    if times > 1:
        raise ConfigError(f"{times} files have the name {name}, but names in a WACZ file must be unique: rename one")
    return paths
