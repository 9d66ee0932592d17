"""A simulated web with chosen features for a real crawl, what the crawl is held to, and what it stored."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from warcio.archiveiterator import ArchiveIterator

from bigcrawl.warc.verification import verify_file
from bigcrawl_simweb.basics.features import Feature, Naming
from bigcrawl_simweb.basics.resources import Kind
from bigcrawl_simweb.check.checker import CheckRules, Report, check_exchanges
from bigcrawl_simweb.exhibits.table import row_of
from bigcrawl_simweb.model.state import SavedWeb, save_web
from bigcrawl_simweb.serve.resolver import DnsServer
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.crawling.verdicts import warc_files, was_untold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bigcrawl_simweb.basics.exchange import Exchange
    from bigcrawl_simweb.model.expectations import Expected

# Spaces that no crawl comes to the end of.
ENDLESS = frozenset({Feature.TRAPS, Feature.FARMS, Feature.HOMES})
_SEED = 7
# What Scrapy says of a fetch that took too long and is tried again.
_TIMED_OUT = re.compile(r" DEBUG: Retrying <GET (\S+)> \(failed \d+ times\): .*[Tt]ime")
_HOUR_MS = 3_600_000
_DNS_PORT = 53


def serve(directory: Path, *, hosts: int, pages: int, features: frozenset[Feature], naming: Naming) -> SimulatedWeb:
    """Serve a web with these features; `pages` are of each host.

    A directory that keeps a web serves that one: it is written before the server starts.
    """
    words = ",".join(sorted(features)) or "plain"
    save_web(directory, SavedWeb(_SEED, hosts, pages, "bigcrawl", 0, naming=naming.value, features=words))
    return SimulatedWeb(directory, hosts=hosts, pages=pages, seed=_SEED)


def expected_of(served: SimulatedWeb) -> dict[str, Expected]:
    """What a correct crawler may see at every URL, by URL."""
    return served.web.expected(served.saved.port, served.seeds)


def hold(served: SimulatedWeb, *, delay_ms: int, retries: int, timeout_s: int) -> Report:
    """Hold the server's log to every rule there is but that of servers' gaps, which are off in the crawls."""
    web, port = served.web, served.saved.port
    expected = expected_of(served)
    followed = web.expected(port, served.seeds, obey_nofollow=False)
    rules = CheckRules(
        expected=expected,
        port=port,
        host_delay_ms=delay_ms,
        host_delays_ms=web.crawl_delays_ms(),
        retries=retries,
        retry_after_max_ms=_HOUR_MS,
        allows=web.allows,
        is_endless=web.is_endless,
        nofollow=frozenset(followed.keys() - expected.keys()),
    )
    report = check_exchanges(answered_within(served.exchanges(), timeout_s), rules)
    too_soon = (gap for gap in report.host_too_soon if gap.earlier.status < 499 or not was_untold(gap, delay_ms))
    return replace(report, host_too_soon=tuple(too_soon))


def answered_within(exchanges: Iterable[Exchange], timeout_s: int) -> list[Exchange]:
    """The exchanges as a client saw them that gives up after so long.

    A server without CPU may send a whole answer later than that, and not notice that nobody waits for it.
    """
    timeout_ms = timeout_s * 1000
    return [each if each.end_ms - each.start_ms < timeout_ms else _given_up(each, timeout_ms) for each in exchanges]


def _given_up(each: Exchange, timeout_ms: int) -> Exchange:
    return replace(each, fault=each.fault if each.is_faulty else "silent", end_ms=each.start_ms + timeout_ms)


def timed_out(directory: Path) -> Counter[str]:
    """How often the crawl's processes gave up a fetch for its time, by URL; the logs below say so at LOG_LEVEL DEBUG.

    One without CPU may do so although the server has answered, and then asks again.
    """
    logs = directory.rglob("log*.txt")
    return Counter(url for log in logs for url in _TIMED_OUT.findall(log.read_text(errors="replace")))


def slug_at(served: SimulatedWeb, url: str, kind: Kind = Kind.EXHIBIT) -> str:
    """The exhibit at a URL, or whose proof is there, by its name in exhibits.py; "" where there is none."""
    resource = served.web.resource_at(url)
    return row_of(resource).slug if resource is not None and resource.kind is kind else ""


def slugs_met(served: SimulatedWeb, kind: Kind) -> set[str]:
    """The exhibits that were asked for on any host, or whose proof was."""
    port = served.saved.port
    return {slug_at(served, f"http://{each.host}:{port}{each.target}", kind) for each in served.exchanges()} - {""}


def faults_at(served: SimulatedWeb, url: str) -> set[str]:
    """What befell the answers at a URL, in the log's words."""
    port = served.saved.port
    return {each.fault for each in served.exchanges() if f"http://{each.host}:{port}{each.target}" == url}


def stored(directory: Path) -> Counter[str]:
    """URLs of the response records of all WARC files, each file sound for two readers: bigcrawl's own and warcio.

    warcio recomputes the digests of blocks and payloads. Its `check` command would decode the bodies besides, and
    breaks on brotli (its decoder sets an attribute that brotli's objects have no place for).
    """
    urls: Counter[str] = Counter()
    for file in warc_files(directory):
        records, _, problem = verify_file(file)
        assert not problem, f"{file}: {problem}"
        assert records == sum(1 for _ in _checked(file, urls)), file
    return urls


def _checked(file: Path, urls: Counter[str]) -> Iterator[str]:
    """The types of a file's records in order; counts the URLs of its responses."""
    with file.open("rb") as stream:
        for record in ArchiveIterator(stream, check_digests="raise"):
            while record.raw_stream.read(1 << 16):
                pass
            if record.rec_type == "response":
                urls[record.rec_headers.get_header("WARC-Target-URI")] += 1
            yield record.rec_type


def resolver_address() -> str:
    """Of this process alone: resolv.conf knows no ports, and nobody may answer for another's crawls."""
    pid = os.getpid()
    return f"127.201.{pid // 250 % 250}.{1 + pid % 250}"


class NamedCrawl(Crawl):
    """A crawl that resolves names by the server at `resolver_address()`; takes root: /etc/resolv.conf is its own."""

    def command(self) -> list[str]:
        (self.directory / "resolv.conf").write_text(f"nameserver {resolver_address()}\noptions timeout:1 attempts:1\n")
        mounted = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
        shell = ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", mounted, str(self.directory / "resolv.conf")]
        return [*shell, *super().command()]


@contextlib.contextmanager
def names_resolved(served: SimulatedWeb) -> Iterator[None]:
    """Answer DNS for the names of a web, at `resolver_address()`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="resolver")
    thread.start()
    resolver = asyncio.run_coroutine_threadsafe(_started(served), loop).result()
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(resolver.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _started(served: SimulatedWeb) -> DnsServer:
    resolver = DnsServer(served.web)
    await resolver.start(resolver_address(), _DNS_PORT)
    return resolver


def peak_bytes(pid: int) -> int:
    """The most memory that a process has had resident so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10
