"""Command line of the simulated web: serve it, list its seeds, check a crawl of it, explain its URLs."""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import BigcrawlError, ConfigError
from bigcrawl_simweb.basics.features import Feature, Naming, features_named
from bigcrawl_simweb.check.checker import CheckRules, check_exchanges
from bigcrawl_simweb.model.explain import catalogue, explain
from bigcrawl_simweb.model.state import SavedWeb, load_web, path_in, save_web
from bigcrawl_simweb.model.uniform import UniformWeb
from bigcrawl_simweb.serve.access_log import read_exchanges
from bigcrawl_simweb.serve.listen import open_listeners
from bigcrawl_simweb.serve.running import ServingOptions, serve_until_signal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bigcrawl_simweb.model.topical import TopicalWeb
    from bigcrawl_simweb.model.web import Web
    from bigcrawl_simweb.serve.running import ServedPorts

# With a host delay of 0.25 s, all hosts at once, a crawl takes less than a minute: about 65 URLs per host with
# redirects and errors, and a crawl delay of at most 0.8 s.
_DEFAULTS: Final = SavedWeb(seed=7, hosts=40, pages_per_host=40, agent="bigcrawl", port=0)
_OPTIONS: Final = tuple(field.name for field in fields(SavedWeb))
_OPTIONS_OF_SHAPES: Final = {
    "web": frozenset(_OPTIONS),
    "uniform": frozenset({"seed", "hosts", "port", "shape"}),
    "topical": frozenset({"seed", "hosts", "pages_per_host", "port", "shape"}),
}
_ANY_PARENT: Final = -1
_ANY_NUMBER: Final = 10**9
_EXIT_UNUSABLE: Final = 2
_PACE_END: Final = 1_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Return 0; 1 for a crawl with faults; 2 for a usage or file error, explained in one line."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.command(options)
        sys.stdout.flush()
    except BigcrawlError as error:
        print(f"simweb: {error}", file=sys.stderr)
        return _EXIT_UNUSABLE
    except BrokenPipeError:  # closed by its reader, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bigcrawl_simweb", description=__doc__)
    commands = parser.add_subparsers(required=True)
    _add_serve(commands.add_parser("serve", help="serve the web until SIGTERM or SIGINT"))
    seeds = commands.add_parser("seeds", help="print the seed URLs, one a host")
    seeds.set_defaults(command=_print_seeds)
    seeds.add_argument("--state", type=Path, metavar="DIR", required=True)
    menus = "uniform shape: all pages that every page of a host links to, the seeds first"
    seeds.add_argument("--menus", action="store_true", help=menus)
    _add_check(commands.add_parser("check", help="hold an access log to the known answer; exit 1 on a fault"))
    commands.add_parser("list", help="list everything odd that features add").set_defaults(command=_list_features)
    explained = commands.add_parser("explain", help="say what a URL is, and what it answers")
    explained.set_defaults(command=_explain_url)
    explained.add_argument("url", metavar="URL")
    _add_web(explained)
    explained.add_argument("--at", type=int, metavar="MS", help="since the epoch; default now")
    return parser


def _add_web(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--seed", type=int, help="which web; default 7")
    add("--hosts", type=int, help="default 40")
    add("--pages", type=int, help="of all hosts together, heavy-tailed, and links as on the web")
    add("--pages-per-host", type=int, help="all hosts alike; default 40")
    add("--naming", choices=[*Naming], help="hosts by loopback address (the default), by name, or half and half")
    names = ", ".join(Feature)
    add("--features", metavar="LIST", help=f"plain (the default), all, or with commas between them: {names}")
    shapes = (
        "uniform: 60 links and 21,000 bytes a page, for benchmarks; topical: pages of 20 topics, for focused crawls"
    )
    add("--shape", choices=[*_OPTIONS_OF_SHAPES], help=shapes)
    add("--agent", help="product token that robots.txt files name; default bigcrawl")
    add("--port", type=int, help="default 0: any free one")
    add("--state", type=Path, metavar="DIR", help="keeps all of the above for the next start")


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_serve_web)
    _add_web(parser)
    add = parser.add_argument
    add("--warc", nargs="+", metavar="FILE", help="serve what these WARC files, directories or patterns store instead")
    pace = "with --warc: answers wait for this multiple of the time that their fetches took; default 1"
    add("--pace", type=float, metavar="X", help=pace)
    add("--log", type=Path, metavar="FILE", help="appends a line for each request")
    add("--processes", type=int, default=1, metavar="N", help="how many serve; default 1")
    add("--proxy-only", action="store_true", help="listen at 127.0.0.1 alone, to be used as an HTTP proxy")
    add("--dns", metavar="ADDRESS:PORT", help="resolve the hosts' names there; port 0: any free one")
    add("--dns-ttl", type=int, default=300, metavar="S", help="for how long an answer may be kept; default 300")
    add("--dns-log", type=Path, metavar="FILE", help="appends a line for each look-up")
    # Without a PID, a parent that ends before the first check goes unnoticed.
    parent = "end when the parent process does; give its PID when it may be short-lived"
    add("--with-parent", type=int, nargs="?", const=_ANY_PARENT, metavar="PID", help=parent)


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_check_log)
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
    add("--no-nofollow", action="store_true", help="the crawl was told to follow what says nofollow")
    add("--sitemaps", action="store_true", help="the crawl reads sitemaps")
    add("--feeds", action="store_true", help="the crawl reads feeds")
    add("--retry-after", type=float, default=0.0, metavar="S", help="up to how long a Retry-After must be kept")
    add(
        "--endless", type=int, metavar="N", help="URLs of spaces without end that are allowed a PLD; default any number"
    )


def _serve_web(options: argparse.Namespace) -> int:
    if options.warc:
        return _serve_stored(options)
    serving = _serving_options(options)
    if options.pace is not None:
        raise ConfigError(f"--pace is {options.pace}, but it needs --warc")
    kept = load_web(options.state) if options.state else None
    saved = _web_of_options(options, kept)
    web = saved.web_of_shape()
    with ExitStack() as stack:
        sockets = open_listeners(["127.0.0.1"] if options.proxy_only else web.addresses(), saved.port)
        for sock in sockets:
            stack.callback(sock.close)
        saved = replace(saved, port=sockets[0].getsockname()[1])
        if options.state and saved != kept:
            save_web(options.state, saved)
        serve_until_signal(web, sockets, serving, lambda ports: _print_ready(web, ports))
    return 0


def _serve_stored(options: argparse.Namespace) -> int:
    others = [name for name in ("state", *_OPTIONS) if name != "port" and getattr(options, name) is not None]
    if others:
        raise ConfigError(f"--{others[0].replace('_', '-')} does not apply to the stored pages of --warc: omit it")
    if options.pace is not None and not 0 <= options.pace < _PACE_END:
        raise ConfigError(f"--pace is {options.pace}; must be at least 0 and below {_PACE_END}")
    # Brings half of bigcrawl, which other commands need not.
    from bigcrawl.stored.answers import StoredAnswers
    from bigcrawl_simweb.serve.stored_web import StoredWeb

    answers = StoredAnswers(options.warc)
    web = StoredWeb(answers, 1.0 if options.pace is None else options.pace)

    def tell(ports: ServedPorts) -> None:
        dns = "" if ports.dns is None else f" dns={ports.dns}"
        print(f"simweb ready: port={ports.http} pages={len(answers)}{dns}", flush=True)

    with ExitStack() as stack:
        sockets = open_listeners(["127.0.0.1"] if options.proxy_only else web.addresses(), options.port or 0)
        for sock in sockets:
            stack.callback(sock.close)
        serve_until_signal(web, sockets, replace(_serving_options(options), has_tls=True), tell)
    return 0


def _print_ready(web: Web | UniformWeb | TopicalWeb, ports: ServedPorts) -> None:
    dns = "" if ports.dns is None else f" dns={ports.dns}"
    print(f"simweb ready: port={ports.http} seeds={web.hosts} seed={web.seed}{dns}", flush=True)


def _serving_options(options: argparse.Namespace) -> ServingOptions:
    parent = os.getppid() if options.with_parent == _ANY_PARENT else options.with_parent
    return ServingOptions(
        log=options.log,
        processes=options.processes,
        dns=_parse_endpoint(options.dns) if options.dns else None,
        dns_ttl_s=options.dns_ttl,
        lookup_log=options.dns_log,
        parent=parent,
    )


def _parse_endpoint(text: str) -> tuple[str, int]:
    address, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise ConfigError(f"--dns is {text!r}; must be ADDRESS:PORT, for example 127.0.0.1:5353")
    return address, int(port)


def _web_of_options(options: argparse.Namespace, kept: SavedWeb | None) -> SavedWeb:
    """Return the web for the options; options that contradict the stored web are an error."""
    asked = {name: getattr(options, name) for name in _OPTIONS if getattr(options, name) is not None}
    if "features" in asked:
        asked["features"] = ",".join(sorted(features_named(asked["features"].split(",")))) or "plain"
    shape = asked.get("shape", kept.shape if kept else _DEFAULTS.shape)
    if asked.keys() - _OPTIONS_OF_SHAPES[shape]:
        raise ConfigError(f"shape is {shape}, which takes only {', '.join(sorted(_OPTIONS_OF_SHAPES[shape]))}")
    if kept is None:
        if "pages" in asked:
            asked.setdefault("pages_per_host", 0)
        return replace(_DEFAULTS, **asked)
    if asked.get("port") == 0:
        del asked["port"]
    for name, value in asked.items():
        if value != getattr(kept, name):
            raise ConfigError(
                f"{name} is {value}, but {path_in(options.state)} keeps a web with {getattr(kept, name)}; "
                "omit the option, or use another directory"
            )
    return kept


def _explain_url(options: argparse.Namespace) -> int:
    saved = _web_of_options(options, load_web(options.state) if options.state else None)
    at_ms = time.time_ns() // 1_000_000 if options.at is None else options.at
    print("\n".join(explain(saved.web(), options.url, saved.port or 80, at_ms)))
    return 0


def _list_features(_: argparse.Namespace) -> int:
    print("\n".join(catalogue()))
    return 0


def _print_seeds(options: argparse.Namespace) -> int:
    saved = _load_web(options.state)
    web = saved.web_of_shape()
    if not options.menus:
        urls: Iterable[str] = web.seeds(saved.port)
    elif isinstance(web, UniformWeb):
        urls = web.menus(saved.port)
    else:
        raise ConfigError(f"{web!r} has no menus; omit --menus, or serve --shape uniform")
    print("\n".join(urls))
    return 0


def _check_log(options: argparse.Namespace) -> int:
    saved = _load_web(options.state)
    rules = _check_rules(saved.web(), saved.port, options)
    report = check_exchanges(read_exchanges(options.log), rules)
    if options.unfinished:
        report = replace(report, missing=(), expected=None)
    if 0 < report.overlap <= options.repeats:
        print(f"fetched again after a kill: {report.overlap} URLs; {options.repeats} may have been in process")
        report = replace(report, refetched=(), over_retried=())
    print(report)
    return 0 if report.ok else 1


def _check_rules(web: Web, port: int, options: argparse.Namespace) -> CheckRules:
    reading = (not options.no_robots, not options.no_nofollow, options.sitemaps, options.feeds)
    expected = web.expected(port, web.seeds(port), *reading)
    nofollow: frozenset[str] = frozenset()
    if Feature.DIRECTIVES in web.features and not options.no_nofollow:
        followed = web.expected(port, web.seeds(port), not options.no_robots, False, options.sitemaps, options.feeds)
        nofollow = frozenset(followed.keys() - expected.keys())
    return CheckRules(
        expected=expected,
        port=port,
        host_delay_ms=round(options.delay * 1000),
        host_delays_ms={} if options.no_robots else web.crawl_delays_ms(),
        pld_of=web.pld_of,
        pld_connections=_ANY_NUMBER,
        server_delay_ms=round(options.server_delay * 1000),
        tolerance_ms=options.tolerance,
        retries=options.retries,
        retry_after_max_ms=round(options.retry_after * 1000),
        allows=None if options.no_robots else web.allows,
        is_endless=web.is_endless,
        endless_max=options.endless,
        nofollow=nofollow,
    )


def _load_web(directory: Path) -> SavedWeb:
    saved = load_web(directory)
    if saved is None:
        raise ConfigError(f"{path_in(directory)} does not exist; serve --state {directory} makes it")
    return saved


if __name__ == "__main__":
    sys.exit(main())
