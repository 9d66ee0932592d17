"""`scrapy frontier warc verify|index|repair|extract`: look after WARC files, of BIGCRAWL_WARC_DIR or those given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from bigcrawl.commands.pages.extract import extract_page
from bigcrawl.commands.pages.files import index_again, verify_files
from bigcrawl.commands.pages.repair import repair_files
from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from bigcrawl.commands.result import Result
    from bigcrawl.config import Config

_VERBS: Final[Mapping[str, Callable[[Config, Sequence[str], argparse.Namespace], Result]]] = {
    "verify": verify_files,
    "index": index_again,
    "repair": repair_files,
    "extract": extract_page,
}
_WHERE: Final = "scrapy frontier warc"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `extract`."""
    parser.add_argument("--to", metavar="FILE", type=Path, help="extract: write the page's body here")
    parser.add_argument(
        "--at", metavar="TIME", default="", help="extract: the last capture until then: 2026, 20261125 ..."
    )


def warc(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Check WARC files, make their indexes again, repair them, or get a page out; damage makes the exit status 1.

    Works while the crawl runs: it looks at files that are complete, and a node never changes one.

    Raises:
        ConfigError: a word is wrong, or a file or page is not there.
        TransientStoreError: the disk refuses.
    """
    verb, *rest = words
    if verb not in _VERBS:
        wanted = "verify [FILE...], index [FILE...], repair [FILE...] or extract URL"
        raise ConfigError(f"{_WHERE} wants {wanted}, and not {verb!r}")
    if verb == "extract" and len(rest) != 1:
        raise ConfigError(f"{_WHERE} extract wants one URL")
    return _VERBS[verb](config, rest, opts)
