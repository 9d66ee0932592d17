"""`scrapy frontier ACTION`: questions to a crawl from outside, and changes by hand; nothing stops for them.

To add an action: a row in `ACTIONS`, a module beside this one, a section in docs/operations.md; `make docs` tells it
by the first line of its function's docstring. An action fetches nothing. What it cannot do is one line on the error
output, with what and remedy, and exit status 1; a command line that cannot be read is a line and exit status 2.

Scrapy's parser sees the options of all commands alone; what it leaves over, an action's own parser reads.

Every `scrapy` command of a machine that has bigcrawl imports this module, to list it: an action's module is imported
when it is run.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from scrapy.commands import ScrapyCommand
from scrapy.utils.log import configure_logging
from scrapy.utils.misc import load_object

from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError, ConfigError

if TYPE_CHECKING:
    from bigcrawl.commands.result import Result
    from bigcrawl.config import Config


URLS_MAX = 10_000  # at once; a shell sends no more words


class Action(NamedTuple):
    """One thing that can be asked for.

    Attributes:
        words: what stands behind its name, for the usage line.
        least: how many words there must be.
        most: how many there may be.
        run: does it: a function below `bigcrawl.commands`, of configuration, words and options.
        about: what it does, in a line.
        examples: words behind its name.
        options: adds its options to a parser: a function below `bigcrawl.commands`; empty: it has none.
        names_crawl: whether its first word is the crawl's name.
    """

    words: str
    least: int
    most: int
    run: str
    about: str
    examples: tuple[str, ...]
    options: str = ""
    names_crawl: bool = False


ACTIONS: Final[dict[str, Action]] = {
    "status": Action("", 0, 0, "status.status", "how the crawl stands, running or not", ("", "--json")),
    "verify": Action("", 0, 0, "verify.verify", "which of the crawl's files are damaged", ("",)),
    "explain": Action(
        "URL",
        1,
        1,
        "explain.explain",
        "what became of a URL, or where it waits",
        ("http://a.example/page", "--find-page http://a.example/page"),
        "explain.add_options",
    ),
    "forget": Action(
        "URL...",
        1,
        URLS_MAX,
        "requeue.forget",
        "let URLs count as never seen",
        ("http://a.example/page",),
    ),
    "retry": Action(
        "URL...",
        1,
        URLS_MAX,
        "requeue.retry",
        "queue URLs that ended once more",
        ("http://a.example/page http://a.example/other",),
    ),
    "awaken": Action(
        "HOST... | --all",
        0,
        URLS_MAX,
        "awaken.awaken",
        "ask hosts again that failed too often",
        ("www.example.com", "--all"),
        "awaken.add_options",
    ),
    "rejected": Action(
        "",
        0,
        0,
        "rejected.rejected",
        "inbox entries that could not be read: list, take in again, drop",
        ("", "--retry", "--drop"),
        "dead.add_verbs",
    ),
    "dead": Action(
        "[--retry | --drop] [URL... | --all]",
        0,
        URLS_MAX,
        "dead.dead",
        "URLs that kill or hang their process: list, queue again, drop",
        ("", "--retry http://a.example/page", "--drop --all"),
        "dead.add_options",
    ),
    "budget": Action(
        "NAME",
        1,
        1,
        "budget.budget",
        "how much of a site passes; set limits by hand",
        ("example.com", "example.com --urls 100 --depth 5", '"re:/print/" --urls 0', "example.com --unset"),
        "budget.add_options",
    ),
    "blacklist": Action(
        "add WHAT... | remove WHAT... | list",
        1,
        URLS_MAX,
        "blacklist.blacklist",
        "where the crawl must not go",
        ("list", 'add example.com "re:/cgi-bin/" 203.0.113.0/24', "remove example.com"),
    ),
    "delay": Action(
        "NAME",
        1,
        1,
        "delay.delay",
        "how long hosts rest; set delays by hand",
        ("www.example.com", "example.org --delay 2 --pld-delay 0.5", "example.org --unset"),
        "delay.add_options",
    ),
    "delete": Action(
        "CRAWL",
        1,
        1,
        "delete.delete",
        "make a crawl as if it had never been; pages and feeds stay",
        ("mycrawl", "mycrawl --yes"),
        "delete.add_options",
        names_crawl=True,
    ),
    "speed": Action(
        "[SPEED]",
        0,
        50,
        "speed.speed",
        "how fast the whole crawl may go",
        ("", '"80/s 08:00-18:00; 180/s"', "0/s", "--unset"),
        "speed.add_options",
    ),
}


class _CommandLineError(BigcrawlError):
    """The words cannot be read; the message says what would be right."""


class _Parser(argparse.ArgumentParser):
    """Reads the words behind an action's name."""

    def error(self, message: str) -> NoReturn:
        raise _CommandLineError(f"{message}; `{self.prog} -h` shows how")


class Command(ScrapyCommand):
    """Questions to a crawl from outside."""

    requires_project = True
    requires_crawler_process = False  # it would make an event loop that nobody runs or closes
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy's own way

    def syntax(self) -> str:
        return "ACTION [WORDS] [--json] [-s NAME=VALUE]"

    def short_desc(self) -> str:
        return "Ask a bigcrawl frontier how it stands, and what became of a URL"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("-h", "--help", action="store_true", help="show what an action does, and how it is called")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print the answer; without one, a line that says why, and exit status 1, or 2 for a wrong command line."""
        assert self.settings is not None
        configure_logging(self.settings)
        try:
            if getattr(opts, "help", False):
                print(parser_of(args[0]).format_help() if args else overview(), end="")
                return
            result = _result_of(self, args, opts)
        except BigcrawlError as error:
            print(f"bigcrawl: {error}", file=sys.stderr)
            self.exitcode = 2 if isinstance(error, _CommandLineError) else 1
            return
        print(json.dumps(result.data, indent=2) if opts.json else result.text)
        self.exitcode = result.status


def _result_of(command: Command, args: list[str], opts: argparse.Namespace) -> Result:
    if not args:
        raise _CommandLineError(f"say what to do: {', '.join(ACTIONS)}; `scrapy frontier -h` tells more")
    parser, action = parser_of(args[0]), ACTIONS[args[0]]
    parser.parse_intermixed_args(args[1:], opts)
    if not action.least <= len(opts.words) <= action.most:
        parser.error(f"{args[0]} wants {action.words or 'nothing behind it'}")
    settings = command.settings
    assert settings is not None
    if action.names_crawl:
        settings.set("BIGCRAWL_CRAWL", opts.words[0], "cmdline")
    elif settings.get("BIGCRAWL_CRAWL") is None:
        settings.set("BIGCRAWL_CRAWL", only_crawl(read_config(settings)), "command")
    result: Result = load_object(f"bigcrawl.commands.{action.run}")(read_config(settings), opts.words, opts)
    return result


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of an action's own words and options, which is its help as well.

    Raises:
        BigcrawlError: there is no such action.
    """
    if name not in ACTIONS:
        alike = difflib.get_close_matches(name, ACTIONS, 1)
        meant = f"; did you mean {alike[0]}?" if alike else ";"
        raise _CommandLineError(f"there is no action {name!r}{meant} `scrapy frontier -h` lists all")
    action = ACTIONS[name]
    parser = _Parser(
        f"scrapy frontier {name}",
        f"scrapy frontier {name} {action.words} [options]".replace("  ", " "),
        f"{name}: {action.about}.",
        "\n".join(["examples:", *(f"  scrapy frontier {name} {words}".rstrip() for words in action.examples), ""]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    # Scrapy's parser has read these; they stand here for the help.
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object")
    parser.add_argument("-s", metavar="NAME=VALUE", default=argparse.SUPPRESS, help="a setting, as the crawl has it")
    if action.options:
        load_object(f"bigcrawl.commands.{action.options}")(parser)
    return parser


def overview() -> str:
    """All actions, a line each."""
    width = max(map(len, ACTIONS))
    return "\n".join(
        [
            "usage: scrapy frontier ACTION [WORDS] [options]",
            "",
            "Asks a crawl how it stands and changes it by hand, while it runs or not; nothing stops for that.",
            "",
            *(f"  {name:<{width}}  {action.about}" for name, action in ACTIONS.items()),
            "",
            "`scrapy frontier ACTION -h` has options and examples. Options of all: --json for programs, and",
            "-s NAME=VALUE for a setting of the crawl: BIGCRAWL_CRAWL= its name, where there are several.",
            "Exit status: 0; 1 for what could not be done, or is damaged or unknown; 2 for a wrong command line.",
            "",
        ]
    )


def only_crawl(config: Config) -> str:
    """The name of the crawl whose state is here: a crawl that was given none has its spider's.

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
