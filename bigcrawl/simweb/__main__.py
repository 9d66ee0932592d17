"""The command line of the simulated web: serve it, list its seeds, check a crawl of it."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl.simweb.access_log import AccessLog, read_exchanges
from bigcrawl.simweb.checker import Rules, check
from bigcrawl.simweb.listen import open_listeners
from bigcrawl.simweb.server import SimServer
from bigcrawl.simweb.state import SavedWeb, load, path_in, save

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from bigcrawl.simweb.web import Web

# Sized so that a crawl with a host delay of 0.25 s, all hosts at once, ends in less than a minute: a host has
# about 65 URLs with its redirects and errors, and the slowest Crawl-delay is 0.8 s.
_DEFAULTS: Final = SavedWeb(seed=7, hosts=40, pages_per_host=40, agent="bigcrawl", port=0)
_OPTIONS: Final = ("seed", "hosts", "pages_per_host", "agent", "port")
_ANY_PARENT: Final = -1
_PARENT_POLL_S: Final = 0.25
_EXIT_UNUSABLE: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status.

    Returns:
        0; 1 for a crawl with faults; 2 for what has to be put right first, said in one line.
    """
    options = _parser().parse_args(arguments)
    try:
        status: int = options.command(options)
    except BigcrawlError as error:
        print(f"simweb: {error}", file=sys.stderr)
        return _EXIT_UNUSABLE
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bigcrawl.simweb", description=__doc__)
    commands = parser.add_subparsers(required=True)
    _add_serve(commands.add_parser("serve", help="serve the web until SIGTERM or SIGINT"))
    seeds = commands.add_parser("seeds", help="print the seed URLs, one a host")
    seeds.set_defaults(command=_seeds)
    seeds.add_argument("--state", type=Path, metavar="DIR", required=True)
    _add_check(commands.add_parser("check", help="hold an access log to the known answer; exit 1 on a fault"))
    return parser


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_serve)
    add = parser.add_argument
    add("--seed", type=int, help="which web; default 7")
    add("--hosts", type=int, help="default 40")
    add("--pages", type=int, dest="pages_per_host", help="pages per host; default 40")
    add("--agent", help="product token that robots.txt files name; default bigcrawl")
    add("--port", type=int, help="default 0: any free one")
    add("--state", type=Path, metavar="DIR", help="keeps all of the above for the next start")
    add("--log", type=Path, metavar="FILE", help="appends a line for each request")
    # Without a PID, a parent that is gone before the first look goes unnoticed.
    parent = "end when the parent process does; give its PID when it may be short-lived"
    add("--with-parent", type=int, nargs="?", const=_ANY_PARENT, metavar="PID", help=parent)


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_check)
    add = parser.add_argument
    add("--state", type=Path, metavar="DIR", required=True)
    add("--log", type=Path, metavar="FILE", required=True)
    add("--delay", type=float, default=0.0, metavar="S", help="host delay; a Crawl-delay may be longer")
    add("--server-delay", type=float, default=0.0, metavar="S", help="gap between starts at one address")
    add("--tolerance", type=int, default=0, metavar="MS", help="by how much a gap may be too short")
    add("--retries", type=int, default=2, help="allowed after a 5xx; default 2, as Scrapy's")
    add("--repeats", type=int, default=0, metavar="N", help="as many may be fetched again: the crawl was killed")
    add("--unfinished", action="store_true", help="the crawl goes on: missing URLs are no fault")
    add("--no-robots", action="store_true", help="the crawl was told to ignore robots.txt")


def _serve(options: argparse.Namespace) -> int:
    parent = _parent(options.with_parent)
    kept = load(options.state) if options.state else None
    saved = _chosen(options, kept)
    web = saved.web()
    sockets = open_listeners(list(web.addresses()), saved.port)
    saved = replace(saved, port=sockets[0].getsockname()[1])
    if options.state and saved != kept:
        save(options.state, saved)
    log = AccessLog(options.log) if options.log else None
    try:
        asyncio.run(_serve_until_told(web, sockets, log, parent))
    except OSError as error:
        raise ConfigError(f"access log {options.log} cannot be written: {error.strerror}") from error
    finally:
        if log:
            log.close()
    return 0


def _chosen(options: argparse.Namespace, kept: SavedWeb | None) -> SavedWeb:
    """What the options ask for; a kept web is the same for ever, so asking for another is an error."""
    asked = {name: getattr(options, name) for name in _OPTIONS if getattr(options, name) is not None}
    if kept is None:
        return replace(_DEFAULTS, **asked)
    if asked.get("port") == 0:
        del asked["port"]
    for name, value in asked.items():
        if value != getattr(kept, name):
            raise ConfigError(
                f"{name} is {value}, but {path_in(options.state)} keeps a web with {getattr(kept, name)}; "
                "leave the option out, or use another directory"
            )
    return kept


async def _serve_until_told(web: Web, sockets: list[socket.socket], log: AccessLog | None, parent: int | None) -> None:
    loop = asyncio.get_running_loop()
    told: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        if not told.done():
            told.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    server = SimServer(web, sockets, log)
    await server.start()
    shape = f"seeds={web.hosts} seed={web.seed} pages={web.pages_per_host}"
    print(f"simweb ready: port={server.port} {shape}", flush=True)
    ends = [told, server.failed]
    if parent is not None:
        ends.append(asyncio.ensure_future(_parent_is_gone(parent)))
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if server.failed.done():
            server.failed.result()
    finally:
        await server.stop()


def _parent(wish: int | None) -> int | None:
    return os.getppid() if wish == _ANY_PARENT else wish


async def _parent_is_gone(parent: int) -> None:
    """Return when the parent has ended.

    Asked again and again, for PDEATHSIG would come when the parent's *thread* ends that started this process.
    """
    while os.getppid() == parent:  # noqa: ASYNC110 - no event says that a parent has ended
        await asyncio.sleep(_PARENT_POLL_S)


def _seeds(options: argparse.Namespace) -> int:
    saved = _kept(options.state)
    print("\n".join(saved.web().seeds(saved.port)))
    return 0


def _check(options: argparse.Namespace) -> int:
    saved = _kept(options.state)
    web = saved.web()
    rules = Rules(
        expected=web.reachable(saved.port, web.seeds(saved.port), obey_robots=not options.no_robots),
        port=saved.port,
        host_delay_ms=round(options.delay * 1000),
        host_delays_ms={} if options.no_robots else web.crawl_delays_ms(),
        server_delay_ms=round(options.server_delay * 1000),
        tolerance_ms=options.tolerance,
        retries=options.retries,
        allows=None if options.no_robots else web.allows,
    )
    report = check(read_exchanges(options.log), rules)
    if options.unfinished:
        report = replace(report, missing=(), expected=None)
    if 0 < report.overlap <= options.repeats:
        print(f"fetched again after a kill: {report.overlap} URLs; {options.repeats} may have been in process")
        report = replace(report, refetched=())
    print(report)
    return 0 if report.ok else 1


def _kept(directory: Path) -> SavedWeb:
    saved = load(directory)
    if saved is None:
        raise ConfigError(f"{path_in(directory)} does not exist; serve --state {directory} makes it")
    return saved


if __name__ == "__main__":
    sys.exit(main())
