"""Hosts, pay-level domains and errors of a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.result import Result, table_lines
from bigcrawl.commands.steering.budget import budget_text
from bigcrawl.views.counted import NOTHING
from bigcrawl.views.errors import by_reason, read_errors
from bigcrawl.views.hosts import ORDERS, STATES, WALKED_MAX, HostQuery, list_hosts
from bigcrawl.views.newest_files import REMEDY
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.plds import LISTED_MAX, list_plds
from bigcrawl.views.plds import ORDERS as PLD_ORDERS
from bigcrawl.views.site import read_host_data, read_pld_data

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config

HOSTS_SHOWN: Final = 30
HOSTS_MAX: Final = 10_000
_HOSTS: Final = {"  state": -10, "due in s": 10, "queued": 10, "taken": 7, "rest s": 10, "  failures": -10}


def hosts_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--state", choices=STATES, default="", help="only hosts in this state")
    add("--sort", choices=ORDERS, default="due", help="due first, most URLs waiting, most failures, or shortest rest")
    add("--limit", type=int, default=HOSTS_SHOWN, metavar="N", help=f"how many; {HOSTS_SHOWN} by default")
    add("--first", type=int, default=0, metavar="N", help="leave out the first N, for the next page")


def hosts(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """List hosts: all, those of a host or PLD and below, or those that match a pattern with * and ?."""
    limit, first = min(max(1, opts.limit), HOSTS_MAX), min(max(0, opts.first), WALKED_MAX)
    wanted = HostQuery(words[0].lower() if words else "", opts.state, opts.sort, first, limit)
    data = in_crawl(config, list_hosts, wanted)
    return Result(data, hosts_text(data))


def hosts_text(data: dict[str, Any]) -> str:
    if not data["hosts"]:
        lines = ["no host in Redis matches; `scrapy frontier status` counts all"]
    else:
        width = max(20, *(len(row["host"]) for row in data["hosts"]))
        lines = table_lines({"host": -width, **_HOSTS}, map(_host_cells, data["hosts"]))
    if not data["is_whole"]:
        lines.append("there are more hosts, which were not examined")
    return "\n".join(lines)


def _host_cells(row: dict[str, Any]) -> tuple[str, ...]:
    due = "" if row["due_in_s"] is None else f"{row['due_in_s']:,.1f}"
    failed = f"{row['failures']:,} {row['why']}" if row["failures"] else ""
    numbers = (due, f"{row['queued']:,}", str(row["taken"]), f"{row['rest_s']:,.1f}")
    return row["host"], f"  {row['state']}", *numbers, f"  {failed}"


PLDS_SHOWN: Final = 30
_PLDS: Final = {"pages": 12, "share": 8, "MB": 12, "in-degree": 11, "  budget, URLs a turn": -1}


def plds_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--sort", choices=PLD_ORDERS, default="pages", help="most pages first, or most bytes of those with most pages")
    add("--here", action="store_true", help="read no files of the store, where there are none here")
    add(
        "--limit",
        type=int,
        default=PLDS_SHOWN,
        metavar="N",
        help=f"how many, at most {LISTED_MAX}; {PLDS_SHOWN} by default",
    )


def plds(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """List the pay-level domains with the most pages, with bytes, in-degree and budget."""
    limit, asks_store = min(max(1, opts.limit), LISTED_MAX), not getattr(opts, "here", False)
    data = in_crawl(config, list_plds, opts.sort, limit, asks_store=asks_store)
    return Result(data, plds_text(data))


def plds_text(data: dict[str, Any]) -> str:
    if data["pages"] is None:
        lines = [NOTHING]
    elif not data["plds"]:
        lines = ["no page is counted yet; nodes send their counts every ten seconds"]
    else:
        width = max(20, *(len(row["pld"]) for row in data["plds"]))
        widths = {"PLD": -width, **_PLDS}
        lines = table_lines(widths, (_pld_cells(row, data["pages"]) for row in data["plds"]))
    if data["from_store"]:
        lines.append(f"the store was asked for {data['from_store']:,} partitions, whose files are not here")
    if data["unread"]:
        lines.append(f"the files of {data['unread']:,} of these PLDs are not here, or none were committed; {REMEDY}")
    if data["unreadable"]:
        nodes = "1 node" if data["unreadable"] == 1 else f"{data['unreadable']:,} nodes"
        lines.append(f"the counts of {nodes} cannot be read by this version")
    return "\n".join(lines)


def _pld_cells(row: dict[str, Any], pages: int) -> tuple[str, ...]:
    in_degree = "" if row["in_degree"] is None else f"{row['in_degree']:,}"
    by = "" if row["budget_set_by"] in (None, "policy") else f" ({row['budget_set_by']})"
    budget = "none" if row["budget"] is None else f"{row['budget']:,}{by}"
    share, megabytes = f"{row['pages'] / pages:.1%}", f"{row['bytes'] / 1e6:,.1f}"
    return row["pld"], f"{row['pages']:,}", share, megabytes, in_degree, f"  {budget}"


def host(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show a host, given its name or any URL on it."""
    data = in_crawl(config, read_host_data, words[0])
    return Result(data, host_text(data))


def pld(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show a pay-level domain, given its name or any host or URL in it."""
    data = in_crawl(config, read_pld_data, words[0])
    return Result(data, pld_text(data))


def host_text(data: dict[str, Any]) -> str:
    due = data["due_in_s"]
    when = "" if due is None else ", may be asked now" if not due else f", may be asked in {due:,.1f} s"
    taken = f", {data['taken']} taken" if data["taken"] else ""
    rows = {
        "of": f"{data['pld']}, in partition {data['partition']}, {_owner_text(data)}",
        "queue": f"{data['queued']:,} URLs in Redis{taken}{when}",
        "rests": f"{data['delay']:g} s, {data['pld_delay']:g} s between starts in its PLD",
        "addresses": ", ".join(data["addresses"]) or "not known",
    }
    if data["state"] != "well":
        last = f"{data['failures']:,} failures in a row, the last by {data['failed_by']}, {data['failed']}"
        rows["state"] = f"{data['state']}: {last}; `scrapy frontier awaken {data['host']}` ends its rest"
    if data["blacklisted"]:
        rows["blacklist"] = f"covers it, by the entry {data['blacklisted']}"
    for robots in data["robots"]:
        delay = "" if robots["crawl_delay"] is None else f", a crawl delay of {robots['crawl_delay']:g} s"
        rules = f"{robots['lines']:,} rules for us{delay}, valid until {robots['valid_until']}"
        rows[f"robots.txt of {robots['authority']}"] = rules
    is_met = data["queued"] or data["taken"] or data["failures"] or data["robots"] or data["addresses"]
    if not is_met:
        rows["known"] = "no: Redis has nothing of it; its URLs may wait on disk, see `scrapy frontier explain URL`"
    lines = [data["host"], *(f"  {name:<11}{text}" for name, text in rows.items())]
    return "\n".join([*lines, *(f"  {'next' if not n else '':<11}{url}" for n, url in enumerate(data["next_urls"]))])


def pld_text(data: dict[str, Any]) -> str:
    lines = [budget_text(data["budget"]), f"  partition  {data['partition']}, {_owner_text(data)}"]
    lines += [f"  failed     {row['fetches']:,} {row['reason']}: {row['example']}" for row in data["errors"]]
    return "\n".join([*lines, hosts_text(data)])


def _owner_text(data: dict[str, Any]) -> str:
    return f"owned by {data['owner']}" if data["owner"] else "owned by no node"


ERRORS_SHOWN = 5


def errors_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--reason", metavar="TEXT", help="only reasons that contain this")
    add("--pld", metavar="PLD", help="only this pay-level domain")
    add(
        "--limit",
        type=int,
        default=ERRORS_SHOWN,
        metavar="N",
        help=f"how many PLDs of each reason; {ERRORS_SHOWN} by default",
    )


def errors(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the most frequent failures, by reason and pay-level domain."""
    rows = in_crawl(config, read_errors)
    if opts.reason:
        rows = [row for row in rows if opts.reason in row["reason"]]
    if opts.pld:
        rows = [row for row in rows if row["pld"] == opts.pld]
    data = {"errors": by_reason(rows, max(1, opts.limit))}
    return Result(data, errors_text(data))


def errors_text(data: dict[str, Any]) -> str:
    lines = []
    for found in data["errors"]:
        some = "1 PLD" if found["plds"] == 1 else f"{found['plds']:,} PLDs"
        lines.append(f"{found['reason']:<28}{found['fetches']:>10,}  in {some}")
        lines += [f"  {row['pld']:<26}{row['fetches']:>10,}  {row['last']}  {row['example']}" for row in found["worst"]]
    return "\n".join(lines) or "nothing of this kind has failed"
