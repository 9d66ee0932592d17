"""`scrapy frontier ACTION`: inspect and change a crawl from outside, without interrupting it.

`bigcrawl.commands.actions` lists the actions, and how to add one. An action fetches nothing. If it fails, it prints one
line with problem and remedy to standard error and exits with status 1; a wrong command line exits with status 2.

Scrapy's parser reads the options common to all actions; an action's own parser reads the rest.

Every `scrapy` command on a machine with bigcrawl imports this module to list it. Therefore an action's module is
imported only when it runs.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from typing import TYPE_CHECKING, NoReturn

from scrapy.commands import ScrapyCommand
from scrapy.utils.log import configure_logging
from scrapy.utils.misc import load_object

from bigcrawl.commands.actions import ACTIONS
from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.logs.json_lines import JSON
from bigcrawl.logs.plain import plain, plain_lines

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from bigcrawl.commands.result import Result
    from bigcrawl.config import Config


PROGRAM = "scrapy frontier"


class _CommandLineError(BigcrawlError):
    """The command line is wrong; the message says what would be right."""


class _Parser(argparse.ArgumentParser):
    """Parses an action's arguments and options."""

    def error(self, message: str) -> NoReturn:
        raise _CommandLineError(f"{message}; `{self.prog} -h` shows how")


class Command(ScrapyCommand):
    """Inspects and changes a crawl from outside.

    Args:
        program: how it is called, for help texts and errors.
        settings: if Scrapy's command line does not give them.
    """

    requires_project = True
    requires_crawler_process = False  # it would create an event loop that is never run or closed
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy's own way

    def __init__(self, program: str = PROGRAM, settings: Settings | None = None) -> None:
        super().__init__()
        self.program = program
        self.settings = settings

    def syntax(self) -> str:
        return "ACTION [WORDS] [--json] [-s NAME=VALUE]"

    def short_desc(self) -> str:
        return "Show the state of a bigcrawl frontier, and what became of a URL"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("-h", "--help", action="store_true", help="show what an action does, and how it is called")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print the result; on failure print one line, and exit with status 1, or 2 for a wrong command line."""
        assert self.settings is not None
        if self.settings.get("LOG_FORMAT") == JSON:
            self.settings.set("LOG_FORMAT", None, "cmdline")  # a command writes no log
        configure_logging(self.settings)
        try:
            if getattr(opts, "help", False):
                text = parser_of(args[0], self.program).format_help() if args else overview(self.program)
                print(text, end="")
                return
            result = _result_of(self, args, opts)
        except BigcrawlError as error:
            print(f"bigcrawl: {plain(str(error))}", file=sys.stderr)
            self.exitcode = 2 if isinstance(error, _CommandLineError) else 1
            return
        print(json.dumps(result.data, indent=2) if opts.json else plain_lines(result.text))
        self.exitcode = result.status


def _result_of(command: Command, args: list[str], opts: argparse.Namespace) -> Result:
    if not args:
        raise _CommandLineError(f"say what to do: {', '.join(ACTIONS)}; `{command.program} -h` tells more")
    opts = parse_action(args[0], args[1:], opts, command.program)
    action = ACTIONS[args[0]]
    settings = command.settings
    assert settings is not None
    if action.names_crawl:
        settings.set("BIGCRAWL_CRAWL", opts.words[0], "cmdline")
    elif action.needs_crawl and settings.get("BIGCRAWL_CRAWL") is None:
        name = load_object(f"bigcrawl.commands.{action.begins_crawl}")(opts) if action.begins_crawl else ""
        settings.set("BIGCRAWL_CRAWL", name or only_crawl(read_config(settings)), "command")
    return run_action(read_config(settings), args[0], opts)


def parse_action(
    name: str, args: list[str], opts: argparse.Namespace | None = None, program: str = PROGRAM
) -> argparse.Namespace:
    """Return an action's words and options; those of `opts` that the arguments do not set stay.

    Raises:
        BigcrawlError: there is no such action, or it is called differently.
    """
    parser, action = parser_of(name, program), ACTIONS[name]
    opts = parser.parse_intermixed_args(args, opts)
    if not action.least <= len(opts.words) <= action.most:
        parser.error(f"{name} wants {action.words or 'nothing behind it'}")
    return opts


def run_action(config: Config, name: str, opts: argparse.Namespace) -> Result:
    """Run an action with words and options as `parse_action` returns them; it may wait for Redis, disks and nodes.

    Raises:
        BigcrawlError: as the action.
    """
    result: Result = load_object(f"bigcrawl.commands.{ACTIONS[name].run}")(config, opts.words, opts)
    return result


def parser_of(name: str, program: str = PROGRAM) -> argparse.ArgumentParser:
    """Return the parser of an action's own arguments and options, which also prints its help.

    Raises:
        BigcrawlError: there is no such action.
    """
    if name not in ACTIONS:
        alike = difflib.get_close_matches(name, ACTIONS, 1)
        meant = f"; did you mean {alike[0]}?" if alike else ";"
        raise _CommandLineError(f"there is no action {name!r}{meant} `{program} -h` lists all")
    action = ACTIONS[name]
    parser = _Parser(
        f"{program} {name}",
        f"{program} {name} {action.words} [options]".replace("  ", " "),
        f"{name}: {action.about}.",
        "\n".join(["examples:", *(f"  {program} {name} {words}".rstrip() for words in action.examples), ""]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    # Scrapy's parser has already read these; they are here for the help text.
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object")
    parser.add_argument("-s", metavar="NAME=VALUE", default=argparse.SUPPRESS, help="a setting, as the crawl has it")
    if action.options:
        load_object(f"bigcrawl.commands.{action.options}")(parser)
    return parser


def overview(program: str = PROGRAM) -> str:
    """Return a help text with all actions, a line each."""
    width = max(map(len, ACTIONS))
    return "\n".join(
        [
            f"usage: {program} ACTION [WORDS] [options]",
            "",
            "Inspects and changes a crawl, whether it runs or not, without interrupting it.",
            "",
            *(f"  {name:<{width}}  {action.about}" for name, action in ACTIONS.items()),
            "",
            f"`{program} ACTION -h` has options and examples. Options of all actions: --json for programs, and",
            "-s NAME=VALUE for a setting of the crawl, such as BIGCRAWL_CRAWL=name if there are several.",
            "Exit status: 0; 1 if the action failed or found damage; 2 for a wrong command line.",
            "",
        ]
    )


def only_crawl(config: Config) -> str:
    """Return the name of the crawl whose state is here; by default a crawl has its spider's name.

    Raises:
        ConfigError: there are several; or none, and no Redis that may know one.
    """
    from bigcrawl.commands.opened_crawl import crawls_here

    names = crawls_here(config)
    if len(names) > 1:
        known = ", ".join(names)
        raise ConfigError(f"there are several crawls here, say which with -s BIGCRAWL_CRAWL=: {known}")
    if not names and not config.crawl.redis_url:
        where = config.crawl.state_dir.absolute()
        raise ConfigError(f"there is no crawl in {where}; go to the project's directory, or set -s BIGCRAWL_STATE_DIR=")
    return names[0] if names else config.crawl.name
