from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from bigcrawl.commands.pages.compact import compact_files
from bigcrawl.commands.pages.extract import extract_page
from bigcrawl.commands.pages.files import reindex_files, repair_files, verify_files
from bigcrawl.commands.pages.upload import upload_files
from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from bigcrawl.commands.result import Result
    from bigcrawl.config import Config

_VERBS: Final[Mapping[str, Callable[[Config, Sequence[str], argparse.Namespace], Result]]] = {
    "verify": verify_files,
    "index": reindex_files,
    "repair": repair_files,
    "compact": compact_files,
    "upload": upload_files,
    "extract": extract_page,
}
_WHERE: Final = "scrapy frontier warc"


def warc_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parquet", action="store_true", help="index: make Parquet files, too")
    parser.add_argument("--to", metavar="FILE", type=Path, help="extract: write the page's body here")
    parser.add_argument(
        "--at", metavar="TIME", default="", help="extract: the last capture until then: 2026, 20261125 ..."
    )


def warc(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Check WARC files, index or repair them, drop copies, move them to a store, or get a page out.

    Only complete files are handled, which a node never changes, so the crawl may run. But a node may write a reference
    to a body that `compact` is dropping; the next call corrects it.
    """
    verb, *rest = words
    if verb not in _VERBS:
        forms = "verify [FILE...], index [FILE...], repair [FILE...], compact [FILE...], upload or extract URL"
        raise ConfigError(f"{_WHERE} needs {forms}, not {verb!r}")
    if verb == "upload" and rest:
        raise ConfigError(f"{_WHERE} upload takes no file names: it moves all complete files")
    if verb == "extract" and len(rest) != 1:
        raise ConfigError(f"{_WHERE} extract needs exactly one URL")
    return _VERBS[verb](config, rest, opts)
