"""The actions of `scrapy frontier`, and of `python -m bigcrawl`.

To add one, add a row to `ACTIONS`, a module in one of the rooms beside this file, and a section in docs/operations.md.
`make docs` describes it by the first line of its function's docstring.
"""

from __future__ import annotations

from typing import Final, NamedTuple

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
        needs_crawl: whether it is about a crawl; otherwise no crawl need be there.
        begins_crawl: a function below `bigcrawl.commands` that returns the name of the crawl that it may begin, given
            the options; empty: it begins none.
    """

    words: str
    least: int
    most: int
    run: str
    about: str
    examples: tuple[str, ...]
    options: str = ""
    names_crawl: bool = False
    begins_crawl: str = ""
    needs_crawl: bool = True


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
        "show how the crawl went since its start",
        ("", "--hours 6 --rows 36", "--json"),
        "looking.history.add_options",
    ),
    "dashboard": Action(
        "",
        0,
        0,
        "looking.dashboard.dashboard",
        "serve the dashboard of a crawl, running or not, until Ctrl-C",
        ("", "-s BIGCRAWL_DASHBOARD_TOKEN_FILE=token.txt"),
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
    "plds": Action(
        "",
        0,
        0,
        "looking.plds.plds",
        "list the pay-level domains with most pages",
        ("", "--limit 100 --sort bytes"),
        "looking.plds.add_options",
    ),
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
    "repair": Action(
        "",
        0,
        0,
        "repairing.repair.repair",
        "take damaged partitions back to their last sound state, and say what that loses",
        ("", "--yes"),
        "repairing.repair.add_options",
    ),
    "warc": Action(
        "verify [FILE...] | index [FILE...] | repair [FILE...] | compact [FILE...] | upload | extract URL",
        1,
        URLS_MAX,
        "pages.warc.warc",
        "check WARC files, index them, drop copies, move them to their store, get a page out",
        ("verify", "index warc/mycrawl-1.warc.gz", "compact", "upload", "extract http://a.example/page --to page.html"),
        "pages.warc.add_options",
        needs_crawl=False,
    ),
    "graph": Action(
        "DIRECTORY",
        1,
        1,
        "pages.graph.graph",
        "write graphs of stored pages, hosts and PLDs",
        ("graphs", "graphs --of hosts plds --as parquet"),
        "pages.graph.add_options",
        needs_crawl=False,
    ),
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
        "repairing.requeue.forget",
        "make URLs count as never seen",
        ("http://a.example/page",),
    ),
    "retry": Action(
        "URL...",
        1,
        URLS_MAX,
        "repairing.requeue.retry",
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
        "repairing.rejected.rejected",
        "inbox entries that could not be read: list, read again, drop",
        ("", "--retry", "--drop"),
        "repairing.dead.add_verbs",
    ),
    "dead": Action(
        "[--retry | --drop] [URL... | --all]",
        0,
        URLS_MAX,
        "repairing.dead.dead",
        "URLs that kill or hang their process: list, queue again, drop",
        ("", "--retry http://a.example/page", "--drop --all"),
        "repairing.dead.add_options",
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
    "changes": Action(
        "FILE",
        1,
        1,
        "moving.changes.changes",
        "write which pages were added, have changed or are gone into a file",
        ("all.jsonl.zst", "news.jsonl --since 2026-11-25T06:00:00Z"),
        "moving.changes.add_options",
    ),
    "copies": Action(
        "FILE",
        1,
        1,
        "moving.copies.copies",
        "write which pages are copies of others into a file",
        ("copies.jsonl",),
    ),
    "import": Action(
        "FILE | DIR | REDIS-URL",
        1,
        1,
        "foreign.import_from.import_from",
        "continue an exported crawl here, or that of another crawler",
        (
            "mycrawl.jsonl.zst",
            "mycrawl.jsonl.zst -s BIGCRAWL_CRAWL=newname",
            "--from scrapy-redis --spider quotes redis://127.0.0.1:6379/0",
        ),
        "foreign.import_from.add_options",
        begins_crawl="foreign.import_from.name_for",
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
    "discovery": Action(
        "[on | off]",
        0,
        1,
        "steering.discovery.discovery",
        "stop queueing links and drain what waits, or queue them again",
        ("", "off", "on"),
    ),
    "checkpoint": Action(
        "",
        0,
        0,
        "steering.checkpoint.checkpoint",
        "have everything made durable now, and wait for it",
        ("", "--timeout 300"),
        "steering.checkpoint.add_options",
    ),
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
