"""`scrapy frontier ACTION`: questions to a crawl from outside, and changes by hand; nothing stops for them.

To add an action: a row in `ACTIONS`, a module beside this one, a section in docs/operations.md; `make docs` tells it by
the first line of its function's docstring. An action fetches
nothing. What it cannot do is one line on the error output, with what and remedy, and exit status 1.

Every `scrapy` command of a machine that has bigcrawl imports this module, to list it: an action's module is imported
when it is run.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.misc import load_object

from bigcrawl.config import read_config
from bigcrawl.exceptions import BigcrawlError, ConfigError

if TYPE_CHECKING:
    import argparse

    from bigcrawl.commands.answer import Answer
    from bigcrawl.config import Config


URLS_MAX = 10_000  # at once; a shell sends no more words


class Action(NamedTuple):
    """One thing that can be asked for.

    Attributes:
        words: what stands behind its name, for the usage line.
        least: how many words there must be.
        most: how many there may be.
        run: does it: a function below `bigcrawl.commands`, of configuration, words and options.
        names_crawl: whether its first word is the crawl's name.
    """

    words: str
    least: int
    most: int
    run: str
    names_crawl: bool = False


ACTIONS: Final[dict[str, Action]] = {
    "status": Action("", 0, 0, "status.status"),
    "verify": Action("", 0, 0, "verify.verify"),
    "explain": Action("URL", 1, 1, "explain.explain"),
    "forget": Action("URL...", 1, URLS_MAX, "again.forget"),
    "retry": Action("URL...", 1, URLS_MAX, "again.retry"),
    "awaken": Action("HOST... | --all", 0, URLS_MAX, "awaken.awaken"),
    "rejected": Action("[--retry | --drop]", 0, 0, "rejected.rejected"),
    "dead": Action("[--retry | --drop] [URL... | --all]", 0, URLS_MAX, "dead.dead"),
    "budget": Action("NAME [--urls N] [--pages N] [--bytes N] [--depth N] [--unset]", 1, 1, "budget.budget"),
    "blacklist": Action("add WHAT... | remove WHAT... | list", 1, URLS_MAX, "blacklist.blacklist"),
    "delay": Action("NAME [--delay S] [--pld-delay S] [--unset]", 1, 1, "delay.delay"),
    "delete": Action("CRAWL [--yes]", 1, 1, "delete.delete", names_crawl=True),
    "speed": Action("[SPEED | --unset]", 0, 50, "speed.speed"),
}


class Command(ScrapyCommand):
    """Questions to a crawl from outside."""

    requires_project = True
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy's own way

    def syntax(self) -> str:
        return " | ".join(f"{name} {action.words}".strip() for name, action in ACTIONS.items()) + " [--json]"

    def short_desc(self) -> str:
        return "Ask a bigcrawl frontier how it stands, and what became of a URL"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        from bigcrawl.commands import awaken, budget, dead, delay, delete

        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        awaken.add_options(parser)
        budget.add_options(parser)
        dead.add_options(parser)
        delay.add_options(parser)
        delete.add_options(parser)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print the answer; exit status 1 with one line when there is nothing to ask, or something is damaged."""
        action = ACTIONS.get(args[0]) if args else None
        if action is None or not action.least <= len(args) - 1 <= action.most:
            raise UsageError(f"say what to do: scrapy frontier {self.syntax()}")
        assert self.settings is not None
        try:
            if action.names_crawl:
                self.settings.set("BIGCRAWL_CRAWL", args[1], "cmdline")
            elif self.settings.get("BIGCRAWL_CRAWL") is None:
                self.settings.set("BIGCRAWL_CRAWL", only_crawl(read_config(self.settings)), "command")
            run = load_object(f"bigcrawl.commands.{action.run}")
            answer: Answer = run(read_config(self.settings), args[1:], opts)
        except BigcrawlError as error:
            print(f"bigcrawl: {error}", file=sys.stderr)
            self.exitcode = 1
            return
        print(json.dumps(answer.data, indent=2) if opts.json else answer.text)
        self.exitcode = answer.status


def only_crawl(config: Config) -> str:
    """The name of the crawl whose state is here: a crawl that was given none has its spider's.

    Raises:
        ConfigError: there are several.
    """
    from bigcrawl.scheduler.crawl_record import RECORD_FILE

    names = sorted(path.parent.name for path in config.crawl.state_dir.glob(f"*/{RECORD_FILE}"))
    if len(names) > 1:
        known = ", ".join(names)
        raise ConfigError(f"there are several crawls here, say which with -s BIGCRAWL_CRAWL=: {known}")
    return names[0] if names else config.crawl.name
