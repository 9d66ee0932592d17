"""The Scrapy command `frontier`. Every `scrapy` command imports this module, and nothing else of bigcrawl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

if TYPE_CHECKING:
    import argparse

    from scrapy.settings import Settings


class Command(ScrapyCommand):
    """Inspects and changes a crawl from outside. Any `settings` given replace those of Scrapy's command line."""

    requires_project = True
    requires_crawler_process = False  # it would create an event loop that is never run or closed
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy's own way

    def __init__(self, program: str = "scrapy frontier", settings: Settings | None = None) -> None:
        super().__init__()
        self.program = program
        self.settings = settings

    def syntax(self) -> str:
        return "ACTION [WORDS] [--json] [-s NAME=VALUE]"

    def short_desc(self) -> str:
        return "Show the state of a bigcrawl frontier, and of its URLs"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("-h", "--help", action="store_true", help="show the effect and the call of an action")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run an action and print its result. A failure is one line and exit status 1; for wrong options it is 2."""
        from bigcrawl.commands.running import run

        assert self.settings is not None
        self.exitcode = run(self.program, self.settings, args, opts)
