from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from bigcrawl.commands.annexes import has_annex, load_module
from bigcrawl.commands.moving.export_file import exported_crawl
from bigcrawl.commands.moving.import_crawl import import_crawl
from bigcrawl.commands.moving.importing import import_source
from bigcrawl.project_settings import crawl_name_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.commands.result import Result
    from bigcrawl.config import Config

EXPORT: Final = "export"
_SOURCES: Final = "bigcrawl_foreign.sources"


def add_options(parser: argparse.ArgumentParser) -> None:
    annex = load_module(_SOURCES) if has_annex(_SOURCES) else None
    parser.add_argument(
        "--from",
        dest="source",
        type=_check_source,
        choices=annex and [EXPORT, *annex.SOURCES],
        default=EXPORT,
        help="what it is; an export by default",
    )
    if annex:
        annex.add_options(parser)


def _check_source(word: str) -> str:
    """Return the name of a source; raise ConfigError if it needs the annex for other crawlers, which is missing."""
    if word != EXPORT:
        load_module(_SOURCES)
    return word


def name_for(opts: argparse.Namespace) -> str:
    """Return the crawl's name as the export or the spider gives it; empty if neither does."""
    if opts.source == EXPORT:
        return exported_crawl(Path(opts.words[0]))
    return crawl_name_of(opts.spider) if opts.spider else ""


def import_from(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Import an export, or data of another crawler, into a crawl, which is begun if it does not exist."""
    if opts.source == EXPORT:
        return import_crawl(config, words, opts)
    source = load_module(_SOURCES).SOURCES[opts.source](words[0], opts)
    return import_source(config, source, opts.request_class)
