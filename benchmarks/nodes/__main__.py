"""`python -m benchmarks.nodes`: what `make bench-nodes` runs. Options: --help.

A table, a row for each number of masters and of nodes: what a page costs Redis and the nodes, and how many pages Redis
could serve with a core for each master, whose busiest one is the limit: the median of some replays, and the least and
the most. 0 masters are one server that is in no cluster. The last column is UbiCrawler's bound on communication
(section 4.1): with n equal nodes a page sends at most lambda * (n - 1) / n links to other nodes, where lambda is the
links to other sites a page.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.crawl.report import aligned, say
from benchmarks.nodes.measuring import measured
from benchmarks.nodes.replay import Recorded
from benchmarks.nodes.servers import started
from benchmarks.nodes.web import LINKS_AWAY

if TYPE_CHECKING:
    from benchmarks.nodes.measuring import Look
    from benchmarks.nodes.servers import Servers

ENDED_SHARE_MIN: Final = 0.9  # what the nodes sent while that was counted is missing
_HEADS: Final = (
    *("masters", "nodes", "pages/s", "Redis us/page", "Redis serves pages/s", "commands/page", "calls/page"),
    *("node us/page", "URLs sent/page", "to other nodes", "bound"),
)


def main() -> None:
    """Measure, print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 3, 4, 8])
    parser.add_argument("--masters", type=int, nargs="+", default=[0], help="of a cluster; 0: one server, no cluster")
    parser.add_argument("--seconds", type=float, default=20.0, help="that are measured")
    parser.add_argument("--warm-up", type=float, default=15.0, help="seconds before that")
    parser.add_argument("--replays", type=int, default=5)
    parser.add_argument("--settings", type=json.loads, default={}, help="more settings of the nodes, as JSON")
    parser.add_argument("--commands", action="store_true", help="say which commands Redis runs for a page")
    options = parser.parse_args()
    rows = [_row_of(masters, nodes, options) for masters in options.masters for nodes in options.nodes]
    say(*aligned([_HEADS, *rows]))


def _row_of(masters: int, nodes: int, options: argparse.Namespace) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as directory:
        with started(masters) as servers:
            before, after, ended = measured(
                nodes, Path(directory), servers, options.warm_up, options.seconds, options.settings
            )
            if options.commands:
                say(*_commands(servers))
        recorded = Recorded.read(Path(directory).glob("record*"), servers, before.at_s, after.at_s)
    found = after.since(before)
    rates = [found.pages / _replayed(recorded, masters, ended) for _ in range(options.replays)]
    return (str(masters), *_row(nodes, found, rates))


def _row(nodes: int, found: Look, rates: list[float]) -> tuple[str, ...]:
    pages = found.pages
    bound = LINKS_AWAY * (nodes - 1) / nodes
    return (
        str(nodes),
        f"{pages / found.at_s:,.0f}",
        f"{1e6 * found.redis_s / pages:.1f}",
        f"{statistics.median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f})",
        f"{found.commands / pages:.2f}",
        f"{found.calls / pages:.3f}",
        f"{1e6 * found.node_s / pages:.0f}",
        f"{found.sent / pages:.2f}",
        f"{found.away / pages:.2f}",
        f"{bound:.2f}",
    )


def _replayed(recorded: Recorded, masters: int, ended: int) -> float:
    """The CPU seconds that the busiest of fresh servers needs for what was recorded."""
    with started(masters) as servers:
        cpu_s = max(recorded.replay(servers))
        share = servers.ended() / ended
        assert share > ENDED_SHARE_MIN, f"in the replay only {share:.0%} of the URLs ended: it is not the same crawl"
        return cpu_s


def _commands(servers: Servers) -> list[str]:
    rows = sorted(servers.commands().items(), key=lambda item: -item[1]["usec"])
    return [f"  {name:14} {row['calls']:9} calls {row['usec']:9} us" for name, row in rows[:25]]


if __name__ == "__main__":
    main()
