from __future__ import annotations

import argparse
import difflib
import json
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from scrapy.utils.log import configure_logging
from scrapy.utils.misc import load_object

from bigcrawl.commands.actions import ACTIONS
from bigcrawl.commands.result import wants_colour
from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.logs.installed import JSON
from bigcrawl.logs.plain import plain, plain_lines, print_text

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from bigcrawl.commands.result import Result
    from bigcrawl.config import Config

PROGRAM = "scrapy frontier"


class _CommandLineError(BigcrawlError):
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _CommandLineError(f"{message}; `{self.prog} -h` shows how")


def run(program: str, settings: Settings, args: list[str], opts: argparse.Namespace) -> int:
    """Print an action's result, or one line if it fails. Return the exit status: 2 for a wrong command line."""
    if settings.get("LOG_FORMAT") == JSON:
        settings.set("LOG_FORMAT", None, "cmdline")  # a command writes no log
    configure_logging(settings)
    try:
        if getattr(opts, "help", False):
            print_text(parser_of(args[0], program).format_help() if args else actions_overview(program), end="")
            return 0
        result = _result_of(program, settings, args, opts)
    except BigcrawlError as error:
        print(f"bigcrawl: {plain(str(error))}", file=sys.stderr)
        return 2 if isinstance(error, _CommandLineError) else 1
    if opts.json:
        print_text(json.dumps(result.data, indent=2))
    else:
        text = plain_lines(result.text)
        print_text(result.paint(text) if wants_colour() else text)
    return result.status


def _result_of(program: str, settings: Settings, args: list[str], opts: argparse.Namespace) -> Result:
    if not args:
        raise _CommandLineError(f"no action was given: {', '.join(ACTIONS)}; `{program} -h` explains them")
    opts = parse_action(args[0], args[1:], opts, program)
    action = ACTIONS[args[0]]
    if action.names_crawl:
        settings.set("BIGCRAWL_CRAWL", opts.words[0], "cmdline")
    elif action.needs_crawl and settings.get("BIGCRAWL_CRAWL") is None:
        name = load_object(f"bigcrawl.commands.{action.begins_crawl}")(opts) if action.begins_crawl else ""
        settings.set("BIGCRAWL_CRAWL", name or only_crawl(read_config(settings)), "command")
    return run_action(read_config(settings), args[0], opts)


def parse_action(
    name: str, args: list[str], opts: argparse.Namespace | None = None, program: str = PROGRAM
) -> argparse.Namespace:
    parser, action = parser_of(name, program), ACTIONS[name]
    opts = parser.parse_intermixed_args(args, opts)
    if not action.least <= len(opts.words) <= action.most:
        parser.error(f"{name} wants {action.words or 'nothing behind it'}")
    return opts


def run_action(config: Config, name: str, opts: argparse.Namespace) -> Result:
    """Run an action with the result of `parse_action`. It may wait for Redis, disks and nodes."""
    result: Result = ACTIONS[name].load()(config, opts.words, opts)
    return result


def data_of_action(config: Config, name: str, args: list[str]) -> dict[str, Any]:
    return run_action(config, name, parse_action(name, args)).data


def parser_of(name: str, program: str = PROGRAM) -> argparse.ArgumentParser:
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
    if add_options := action.load("_options"):
        add_options(parser)
    return parser


def actions_overview(program: str = PROGRAM) -> str:
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
    """Return the name of the only crawl here; without any, the configured name, which Redis may know."""
    from bigcrawl.views.opened_crawl import crawls_here

    names = crawls_here(config)
    if len(names) > 1:
        known = ", ".join(names)
        raise ConfigError(f"there are several crawls here; choose one with -s BIGCRAWL_CRAWL=: {known}")
    if not names and not config.crawl.redis_url:
        where = config.crawl.state_dir.absolute()
        raise ConfigError(f"there is no crawl in {where}; go to the project's directory, or set -s BIGCRAWL_STATE_DIR=")
    return names[0] if names else config.crawl.name
