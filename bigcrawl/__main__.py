"""`python -m bigcrawl ACTION`: `scrapy frontier ACTION` without a Scrapy project; settings by `-s NAME=VALUE`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError
from scrapy.utils.project import get_project_settings

from bigcrawl.commands.frontier import Command
from bigcrawl.logs.plain import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "python -m bigcrawl"


def main(arguments: Sequence[str]) -> int:
    settings = get_project_settings()
    settings.setdict(Command.default_settings, priority="command")
    command = Command(PROGRAM, settings)
    parser = argparse.ArgumentParser(
        PROGRAM, f"{PROGRAM} {command.syntax()}", conflict_handler="resolve", allow_abbrev=False
    )
    command.add_options(parser)
    options, words = parser.parse_known_args(arguments)
    try:
        command.process_options(words, options)
    except UsageError as error:
        print(f"bigcrawl: {plain(str(error))}", file=sys.stderr)
        return 2
    command.run(words, options)
    return command.exitcode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
