"""The actions of `scrapy frontier`, and of `python -m bigcrawl`.

To add an action, add a row to `ACTIONS`, a module in a folder here or in an annex, and a section in docs/operations.md.
`make docs` describes it by the first line of its function's docstring.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from bigcrawl.given import load_module

URLS_MAX = 10_000  # per call; a command line has no room for more


class Action(NamedTuple):
    """One action of the command line.

    Attributes:
        run: path of its function, below `bigcrawl.commands` unless in an annex, called with configuration, arguments
            and options. A function of the same name and `_options` beside it adds options to a parser.
        about: what the action does, in one line.
        examples: the arguments of example calls.
        words: the action's arguments, `least` to `most` of them, for the usage line.
        names_crawl: whether the first argument is the crawl's name.
        begins_crawl: path of a function that returns, given the options, the crawl that it may begin; else empty.
    """

    run: str
    about: str
    examples: tuple[str, ...]
    words: str = ""
    least: int = 0
    most: int = 0
    names_crawl: bool = False
    begins_crawl: str = ""
    needs_crawl: bool = True

    def load(self, suffix: str = "") -> Any:
        """Return the action's function, or the one with `suffix`, or None; raise ConfigError without its annex."""
        module, _, function = self.run.rpartition(".")
        inside = "" if module.startswith("bigcrawl_") else "bigcrawl.commands."
        return getattr(load_module(f"{inside}{module}"), function + suffix, None)


ACTIONS: Final[dict[str, Action]] = {
    "status": Action("looking.status.status", "show the state of the crawl, running or not", ("", "--json")),
    "top": Action("looking.top.top", "watch the crawl in the terminal, live; q ends it", ("", "--once")),
    "history": Action(
        "looking.activity.history",
        "show the course of the crawl since its start",
        ("", "--hours 6 --rows 36", "--json"),
    ),
    "dashboard": Action(
        "looking.dashboard.dashboard",
        "serve the dashboard of a crawl, running or not, until Ctrl-C",
        ("", "-s BIGCRAWL_DASHBOARD_TOKEN_FILE=token.txt"),
    ),
    "recent": Action(
        "looking.activity.recent", "show the last fetches, items, warnings and errors of all nodes", ("", "--json")
    ),
    "events": Action(
        "looking.activity.events", "show what happened to the crawl: nodes, orders, its begin and end", ("", "--json")
    ),
    "crawls": Action("looking.activity.crawls", "list the crawls of this Redis", ("", "--json")),
    "jobs": Action(
        "looking.activity.jobs",
        "list the jobs of a scrapyd",
        ("-s BIGCRAWL_DASHBOARD_SCRAPYD=http://127.0.0.1:6800",),
        needs_crawl=False,
    ),
    "nodes": Action("looking.status.nodes", "show the nodes, one by one", ("",)),
    "hosts": Action(
        "looking.sites.hosts",
        "list the hosts that Redis knows, by state",
        ("", "--state snoozed --sort failures", "example.com --sort waiting", '"*.edu" --limit 100'),
        "[HOST | PLD | PATTERN]",
        0,
        1,
    ),
    "host": Action("looking.sites.host", "show a host: rests, failures, queue", ("www.example.com",), "HOST", 1, 1),
    "plds": Action(
        "looking.sites.plds", "list the pay-level domains with most pages", ("", "--limit 100 --sort bytes")
    ),
    "pld": Action("looking.sites.pld", "show a pay-level domain: budget, hosts, errors", ("example.com",), "PLD", 1, 1),
    "errors": Action(
        "looking.sites.errors",
        "show the most frequent failures, by reason and site, with examples",
        ("", "--reason timeout --limit 20", "--pld example.com"),
    ),
    "report": Action(
        "bigcrawl_report.command.report",
        "write the crawl's figures as a page with plots, and as JSON",
        ("", "reports/today"),
        "[DIR]",
        0,
        1,
    ),
    "estimate": Action(
        "bigcrawl_sampling.command.estimate",
        "estimate the size of a web from the random walks so far",
        ("", "--json"),
    ),
    "verify": Action("repairing.repair.verify", "list damaged files of the crawl", ("",)),
    "repair": Action(
        "repairing.repair.repair",
        "take damaged partitions back to their last sound state, and show the loss",
        ("", "--yes"),
    ),
    "warc": Action(
        "pages.warc.warc",
        "check WARC files, index them, drop copies, move them to their store, get a page out",
        ("verify", "index warc/mycrawl-1.warc.gz", "compact", "upload", "extract http://a.example/page --to page.html"),
        "verify [FILE...] | index [FILE...] | repair [FILE...] | compact [FILE...] | upload | extract URL",
        1,
        URLS_MAX,
        needs_crawl=False,
    ),
    "wacz": Action(
        "bigcrawl_wacz.command.wacz",
        "pack stored pages into one file that replays",
        ("crawl.wacz", 'crawl.wacz -s BIGCRAWL_SOURCE="warc/*.warc.gz" --title News'),
        "FILE",
        1,
        1,
        needs_crawl=False,
    ),
    "graph": Action(
        "bigcrawl_graphs.command.graph",
        "write graphs of stored pages, hosts and PLDs",
        ("graphs", "graphs --of hosts plds --as parquet"),
        "DIRECTORY",
        1,
        1,
        needs_crawl=False,
    ),
    "explain": Action(
        "looking.explain.explain",
        "show the place or the outcome of a URL",
        ("http://a.example/page", "--find-page http://a.example/page"),
        "URL",
        1,
        1,
    ),
    "add": Action(
        "steering.add.add",
        "queue URLs, from the command line, files or standard input",
        ("http://a.example/page", "--priority 10 urls.txt", "-"),
        "URL... | FILE... | -",
        1,
        URLS_MAX,
    ),
    "forget": Action(
        "repairing.requeue.forget", "make URLs count as never seen", ("http://a.example/page",), "URL...", 1, URLS_MAX
    ),
    "retry": Action(
        "repairing.requeue.retry",
        "queue URLs that ended again",
        ("http://a.example/page http://a.example/other",),
        "URL...",
        1,
        URLS_MAX,
    ),
    "awaken": Action(
        "repairing.requeue.awaken",
        "fetch again from hosts that failed too often",
        ("www.example.com", "--all"),
        "HOST... | --all",
        0,
        URLS_MAX,
    ),
    "rejected": Action(
        "repairing.dead.rejected",
        "inbox entries that could not be read: list, read again, drop",
        ("", "--retry", "--drop"),
    ),
    "dead": Action(
        "repairing.dead.dead",
        "URLs that kill or hang their process: list, queue again, drop",
        ("", "--retry http://a.example/page", "--drop --all"),
        "[--retry | --drop] [URL... | --all]",
        0,
        URLS_MAX,
    ),
    "budget": Action(
        "steering.budget.budget",
        "show how much of a site passes; set limits by hand",
        ("example.com", "example.com --urls 100 --depth 5", '"re:/print/" --urls 0', "example.com --unset"),
        "NAME",
        1,
        1,
    ),
    "blacklist": Action(
        "steering.pause.blacklist",
        "show and change the blacklist",
        ("list", 'add example.com "re:/cgi-bin/" 203.0.113.0/24', "remove example.com"),
        "add WHAT... | remove WHAT... | list",
        1,
        URLS_MAX,
    ),
    "delay": Action(
        "steering.pace.delay",
        "show how long hosts rest; set delays by hand",
        ("www.example.com", "example.org --delay 2 --pld-delay 0.5", "example.org --unset"),
        "NAME",
        1,
        1,
    ),
    "delete": Action(
        "steering.delete.delete",
        "delete a crawl's state; pages and feeds stay",
        ("mycrawl", "mycrawl --yes"),
        "CRAWL",
        1,
        1,
        names_crawl=True,
    ),
    "export": Action(
        "moving.export.export",
        "write waiting URLs, seen keys and rules of the crawl into a file",
        ("mycrawl.jsonl.zst",),
        "FILE",
        1,
        1,
    ),
    "changes": Action(
        "moving.page_lists.changes",
        "write which pages were added, have changed or are gone into a file",
        ("all.jsonl.zst", "news.jsonl --since 2026-11-25T06:00:00Z"),
        "FILE",
        1,
        1,
    ),
    "copies": Action(
        "moving.page_lists.copies",
        "write which pages are copies of others into a file",
        ("copies.jsonl",),
        "FILE",
        1,
        1,
    ),
    "import": Action(
        "moving.importing.import_from",
        "continue an exported crawl here, or that of another crawler",
        (
            "mycrawl.jsonl.zst",
            "mycrawl.jsonl.zst -s BIGCRAWL_CRAWL=newname",
            "--from scrapy-redis --spider quotes redis://127.0.0.1:6379/0",
        ),
        "FILE | DIR | REDIS-URL",
        1,
        1,
        begins_crawl="moving.importing.name_for",
    ),
    "pause": Action(
        "steering.pause.pause",
        "stop fetching for a while: the crawl, a node, or sites",
        ("", "node2", "example.com"),
        "[NODE | HOST | PLD]...",
        0,
        URLS_MAX,
    ),
    "resume": Action(
        "steering.pause.resume",
        "resume paused nodes or the whole crawl",
        ("", "example.com"),
        "[NODE | HOST | PLD]...",
        0,
        URLS_MAX,
    ),
    "drain": Action(
        "steering.pause.drain",
        "end nodes; others take their partitions",
        ("node2", "--all"),
        "NODE... | --all",
        0,
        100,
    ),
    "discovery": Action(
        "steering.pause.discovery",
        "stop queueing links and drain the waiting URLs, or queue links again",
        ("", "off", "on"),
        "[on | off]",
        0,
        1,
    ),
    "checkpoint": Action(
        "steering.checkpoint.checkpoint", "have everything made durable now, and wait for it", ("", "--timeout 300")
    ),
    "speed": Action(
        "steering.pace.speed",
        "show and set the speed of the whole crawl",
        ("", '"80/s 08:00-18:00; 180/s"', "0/s", "--unset"),
        "[SPEED]",
        0,
        50,
    ),
}
