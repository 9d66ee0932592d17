from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bigcrawl.commands.looking.hosts import hosts_text
from bigcrawl.commands.result import Result
from bigcrawl.commands.steering.budget import budget_text
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.site import read_host_data, read_pld_data

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bigcrawl.config import Config


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
