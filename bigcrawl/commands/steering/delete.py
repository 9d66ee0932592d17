from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError
from bigcrawl.logs.plain import plain_lines
from bigcrawl.scheduler.crawl.deletion import delete_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config


def delete_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def delete(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Delete the named crawl; its pages and feeds stay."""
    crawl = config.crawl
    where = f"{crawl.crawl_dir}" + (" and its keys in the Redis" if crawl.redis_url else "")
    absent = ConfigError(f"{crawl.crawl_dir} does not exist: there is no crawl {crawl.name!r}; see BIGCRAWL_STATE_DIR")
    if not (crawl.redis_url or config.store.url or crawl.crawl_dir.exists()):
        raise absent
    if not opts.yes and not is_confirmed(f"delete crawl {crawl.name}: {where}? WARC files and feeds stay. [y/N] "):
        raise ConfigError(f"crawl {crawl.name!r} was not deleted: answer y, or give --yes")
    deleted = asyncio.run(delete_crawl(config))
    if not any(deleted):
        raise absent
    text = f"deleted crawl {crawl.name}: {where}; WARC files and feeds stay"
    return Result({"crawl": crawl.name, **deleted._asdict()}, text)


def is_confirmed(question: str) -> bool:
    """Ask a question on standard error. Only y or yes on standard input means yes."""
    print(plain_lines(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
