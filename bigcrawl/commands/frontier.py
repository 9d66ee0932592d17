"""`scrapy frontier ACTION`: inspect and change a crawl from outside, without interrupting it.

To add an action, add a row to `ACTIONS`, a module beside this one, and a section in docs/operations.md. `make docs`
describes it by the first line of its function's docstring. An action fetches nothing. If it fails, it prints one line
with problem and remedy to standard error and exits with status 1; a wrong command line exits with status 2.

Scrapy's parser reads the options common to all actions; an action's own parser reads the rest.

Every `scrapy` command on a machine with bigcrawl imports this module to list it. Therefore an action's module is
imported only when it runs.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from scrapy.commands import ScrapyCommand
from scrapy.utils.log import configure_logging
from scrapy.utils.misc import load_object

from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError, ConfigError

if TYPE_CHECKING:
    from bigcrawl.commands.result import Result
    from bigcrawl.config import Config


URLS_MAX = 10_000  # per call; more do not fit in a command line


class Action(NamedTuple):
    """One action.

    Attributes:
        words: its arguments, for the usage line.
        least: minimum number of arguments.
        most: maximum number of arguments.
        run: the function below `bigcrawl.commands` that runs it, given configuration, arguments and options.
        about: what it does, in a line.
        examples: arguments of example calls.
        options: a function below `bigcrawl.commands` that adds its options to a parser; empty: it has none.
        names_crawl: whether its first argument is the crawl's name.
        begins_crawl: whether its first argument is the file of an exported crawl, which by default keeps its name.
    """

    words: str
    least: int
    most: int
    run: str
    about: str
    examples: tuple[str, ...]
    options: str = ""
    names_crawl: bool = False
    begins_crawl: bool = False


ACTIONS: Final[dict[str, Action]] = {
    "status": Action("", 0, 0, "looking.status.status", "show the state of the crawl, running or not", ("", "--json")),
    "top": Action(
        "",
        0,
        0,
        "looking.top.top",
        "watch the crawl in the terminal, live; q ends it",
        ("", "--once"),
        "looking.top.add_options",
    ),
    "history": Action(
        "",
        0,
        0,
        "looking.history.history",
        "show how the crawl went since its begin",
        ("", "--hours 6 --rows 36", "--json"),
        "looking.history.add_options",
    ),
    "nodes": Action("", 0, 0, "looking.nodes.nodes", "show the nodes, one by one", ("",)),
    "hosts": Action(
        "[HOST | PLD | PATTERN]",
        0,
        1,
        "looking.hosts.hosts",
        "list the hosts that Redis knows, by state",
        ("", "--state snoozed --sort failures", "example.com --sort waiting", '"*.edu" --limit 100'),
        "looking.hosts.add_options",
    ),
    "host": Action("HOST", 1, 1, "looking.site.host", "show a host: rests, failures, queue", ("www.example.com",)),
    "pld": Action("PLD", 1, 1, "looking.site.pld", "show a pay-level domain: budget, hosts, errors", ("example.com",)),
    "errors": Action(
        "",
        0,
        0,
        "looking.errors.errors",
        "show what fails most, by reason and site, with examples",
        ("", "--reason timeout --limit 20", "--pld example.com"),
        "looking.errors.add_options",
    ),
    "report": Action(
        "[DIR]",
        0,
        1,
        "looking.report.report",
        "write the crawl's figures as a page with plots, and as JSON",
        ("", "reports/today"),
    ),
    "verify": Action("", 0, 0, "looking.verify.verify", "list damaged files of the crawl", ("",)),
    "explain": Action(
        "URL",
        1,
        1,
        "looking.explain.explain",
        "show what became of a URL, or where it waits",
        ("http://a.example/page", "--find-page http://a.example/page"),
        "looking.explain.add_options",
    ),
    "add": Action(
        "URL... | FILE... | -",
        1,
        URLS_MAX,
        "steering.add.add",
        "queue URLs, from the command line, files or standard input",
        ("http://a.example/page", "--priority 10 urls.txt", "-"),
        "steering.add.add_options",
    ),
    "forget": Action(
        "URL...",
        1,
        URLS_MAX,
        "steering.requeue.forget",
        "make URLs count as never seen",
        ("http://a.example/page",),
    ),
    "retry": Action(
        "URL...",
        1,
        URLS_MAX,
        "steering.requeue.retry",
        "queue URLs that ended again",
        ("http://a.example/page http://a.example/other",),
    ),
    "awaken": Action(
        "HOST... | --all",
        0,
        URLS_MAX,
        "steering.awaken.awaken",
        "fetch again from hosts that failed too often",
        ("www.example.com", "--all"),
        "steering.awaken.add_options",
    ),
    "rejected": Action(
        "",
        0,
        0,
        "looking.rejected.rejected",
        "inbox entries that could not be read: list, read again, drop",
        ("", "--retry", "--drop"),
        "looking.dead.add_verbs",
    ),
    "dead": Action(
        "[--retry | --drop] [URL... | --all]",
        0,
        URLS_MAX,
        "looking.dead.dead",
        "URLs that kill or hang their process: list, queue again, drop",
        ("", "--retry http://a.example/page", "--drop --all"),
        "looking.dead.add_options",
    ),
    "budget": Action(
        "NAME",
        1,
        1,
        "steering.budget.budget",
        "show how much of a site passes; set limits by hand",
        ("example.com", "example.com --urls 100 --depth 5", '"re:/print/" --urls 0', "example.com --unset"),
        "steering.budget.add_options",
    ),
    "blacklist": Action(
        "add WHAT... | remove WHAT... | list",
        1,
        URLS_MAX,
        "steering.blacklist.blacklist",
        "show and change the blacklist",
        ("list", 'add example.com "re:/cgi-bin/" 203.0.113.0/24', "remove example.com"),
    ),
    "delay": Action(
        "NAME",
        1,
        1,
        "steering.delay.delay",
        "show how long hosts rest; set delays by hand",
        ("www.example.com", "example.org --delay 2 --pld-delay 0.5", "example.org --unset"),
        "steering.delay.add_options",
    ),
    "delete": Action(
        "CRAWL",
        1,
        1,
        "steering.delete.delete",
        "delete a crawl's state; pages and feeds stay",
        ("mycrawl", "mycrawl --yes"),
        "steering.delete.add_options",
        names_crawl=True,
    ),
    "export": Action(
        "FILE",
        1,
        1,
        "moving.export.export",
        "write waiting URLs, seen keys and rules of the crawl into a file",
        ("mycrawl.jsonl.zst",),
    ),
    "import": Action(
        "FILE",
        1,
        1,
        "moving.import_crawl.import_crawl",
        "continue an exported crawl here, or under another name",
        ("mycrawl.jsonl.zst", "mycrawl.jsonl.zst -s BIGCRAWL_CRAWL=newname"),
        begins_crawl=True,
    ),
    "pause": Action(
        "[NODE | HOST | PLD]...",
        0,
        URLS_MAX,
        "steering.pause.pause",
        "stop fetching for a while: the crawl, a node, or sites",
        ("", "node2", "example.com"),
    ),
    "resume": Action(
        "[NODE | HOST | PLD]...",
        0,
        URLS_MAX,
        "steering.pause.resume",
        "go on with what was paused",
        ("", "example.com"),
    ),
    "drain": Action("NODE...", 1, 100, "steering.drain.drain", "end nodes; others take their partitions", ("node2",)),
    "speed": Action(
        "[SPEED]",
        0,
        50,
        "steering.speed.speed",
        "show and set the speed of the whole crawl",
        ("", '"80/s 08:00-18:00; 180/s"', "0/s", "--unset"),
        "steering.speed.add_options",
    ),
}


class _CommandLineError(BigcrawlError):
    """The command line is wrong; the message says what would be right."""


class _Parser(argparse.ArgumentParser):
    """Parses an action's arguments and options."""

    def error(self, message: str) -> NoReturn:
        raise _CommandLineError(f"{message}; `{self.prog} -h` shows how")


class Command(ScrapyCommand):
    """Inspects and changes a crawl from outside."""

    requires_project = True
    requires_crawler_process = False  # it would create an event loop that is never run or closed
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy's own way

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
    elif settings.get("BIGCRAWL_CRAWL") is None and action.begins_crawl:
        from bigcrawl.commands.moving.export_file import exported_crawl

        settings.set("BIGCRAWL_CRAWL", exported_crawl(Path(opts.words[0])), "command")
    elif settings.get("BIGCRAWL_CRAWL") is None:
        settings.set("BIGCRAWL_CRAWL", only_crawl(read_config(settings)), "command")
    result: Result = load_object(f"bigcrawl.commands.{action.run}")(read_config(settings), opts.words, opts)
    return result


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of an action's own arguments and options, which also prints its help.

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
    # Scrapy's parser has already read these; they are here for the help text.
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object")
    parser.add_argument("-s", metavar="NAME=VALUE", default=argparse.SUPPRESS, help="a setting, as the crawl has it")
    if action.options:
        load_object(f"bigcrawl.commands.{action.options}")(parser)
    return parser


def overview() -> str:
    """Return a help text with all actions, a line each."""
    width = max(map(len, ACTIONS))
    return "\n".join(
        [
            "usage: scrapy frontier ACTION [WORDS] [options]",
            "",
            "Inspects and changes a crawl, whether it runs or not, without interrupting it.",
            "",
            *(f"  {name:<{width}}  {action.about}" for name, action in ACTIONS.items()),
            "",
            "`scrapy frontier ACTION -h` has options and examples. Options of all actions: --json for programs, and",
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
