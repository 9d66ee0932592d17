from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.clock import time_text
from bigcrawl.commands.result import Result, wrapped_lines
from bigcrawl.views.activity.events import events_of
from bigcrawl.views.opened_crawl import in_crawl

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

INDENT: Final = 34


def events(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show what happened to the crawl, the last first: nodes, orders, a Redis that was away, begin and end."""
    found = in_crawl(config, events_of)
    lines = [
        line
        for event in found["events"]
        for line in wrapped_lines(f"{time_text(round(event['at'] * 1000))}  {event['kind']:<12}{event['text']}", INDENT)
    ]
    return Result(found, "\n".join(lines) or "nothing has happened yet")
