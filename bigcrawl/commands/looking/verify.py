from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.commands.result import Result
from bigcrawl.views.damage import damage_of, missing_files

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config


def verify(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Read all files of the crawl and list damaged ones; the exit status is 1 if there are any."""
    damaged = [*damage_of(config), *missing_files(config)]
    text = "\n".join(damaged) if damaged else f"crawl {config.crawl.name}: every file is sound"
    return Result({"damaged": damaged}, text, 1 if damaged else 0)
