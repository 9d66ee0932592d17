"""A crawl connects to the hosts that it fetches and to the services that its settings name, by its system calls."""

from __future__ import annotations

import re
import shutil
import ssl
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.crawling.crawls import Crawl
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import no_strays_below
from tests.support.servers.certificates import Authority
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

HOSTS = ("127.81.0.1", "127.81.0.2")  # the second speaks TLS
EVERYTHING: dict[str, Any] = {
    "BIGCRAWL_CONTENT_SEEN": "near",
    "BIGCRAWL_DASHBOARD": 1,
    "BIGCRAWL_DASHBOARD_PORT": 0,
    "BIGCRAWL_DNS_SHARED": 1,
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_LINK_VOTES": 1,
    "BIGCRAWL_METRICS": 1,
    "BIGCRAWL_METRICS_PORT": 0,
    "BIGCRAWL_PARTITIONS": 4,
    "BIGCRAWL_REVISIT": "periodic",
    "BIGCRAWL_REVISIT_SECONDS": 1,
    "BIGCRAWL_REVISIT_SECONDS_MIN": 1,
    "BIGCRAWL_REVISIT_VISITS_MAX": 2,
    "BIGCRAWL_WARC_INDEX": "cdxj,parquet",
    "COOKIES_ENABLED": 1,
}
CONNECT = re.compile(r"sa_family=AF_(\w+)(?:.*?(?:sin6?_port=htons\((\d+)\).*?\"([^\"]+)\"|sun_path=(@?\"[^\"]*\")))?")


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        port, secure = self.server.ports  # type: ignore[attr-defined]
        links = "".join(f"<a href=/{n}>{n}</a>" for n in range(4))
        body = f"<a href=http://{HOSTS[0]}:{port}/>a</a><a href=https://{HOSTS[1]}:{secure}/>b</a>{links}".encode()
        if self.path == "/robots.txt":
            body = b"User-agent: *\nAllow: /\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "session=1; Path=/")
        self.send_header("Set-Cookie", "all=1; Domain=co.uk")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class TracedCrawl(Crawl):
    """Its processes, and those that they start, write their connections to files `connects.*`."""

    def command(self) -> list[str]:
        strace = shutil.which("strace")
        assert strace is not None, "run: make system"
        calls = ["-f", "-ff", "--seccomp-bpf", "-e", "trace=connect,sendto,sendmsg,sendmmsg"]
        return [strace, *calls, "-o", str(self.directory / "connects"), *super().command()]

    def peers(self) -> set[tuple[str, str]]:
        """Address and port of those that were spoken to, and the paths of Unix sockets."""
        lines = [line for file in self.directory.glob("connects.*") for line in file.read_text().splitlines()]
        found = [CONNECT.search(line) for line in lines]
        return {(each[3] or each[4] or each[1], each[2] or "") for each in found if each is not None}


@pytest.mark.parametrize("has_server", [True, False], ids=["named Redis", "embedded Redis"])
def test_crawl_speaks_to_its_hosts_and_its_services_alone(tmp_path: Path, *, has_server: bool) -> None:
    """With cookies, with https, with every feature that is off by default."""
    with ExitStack() as stack:
        plain, secure = (stack.enter_context(at_work(ThreadingHTTPServer((host, 0), Shop))) for host in HOSTS)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Authority(tmp_path / "authority").certificate("server", address=HOSTS[1]))
        secure.socket = context.wrap_socket(secure.socket, server_side=True)
        plain.ports = secure.ports = ports = plain.server_port, secure.server_port  # type: ignore[attr-defined]
        settings = {**EVERYTHING, "FEEDS": f'{{"{tmp_path / "items.jsonl"}": {{"format": "jsonlines"}}}}'}
        settings["BIGCRAWL_STORE_URL"] = f"file://{tmp_path / 'store'}"
        settings["BIGCRAWL_REPORT_DIR"] = tmp_path / "report"
        if has_server:
            settings["BIGCRAWL_REDIS_URL"] = stack.enter_context(PrivateRedis()).url
        stack.enter_context(no_strays_below(tmp_path))
        home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home")}  # has no list
        crawl = stack.enter_context(
            TracedCrawl(tmp_path / "crawl", [f"http://{HOSTS[0]}:{ports[0]}/"], settings, environment=home)
        )
        assert crawl.run(300) == 0, crawl.log.read_text()
        assert "Spider closed (finished)" in crawl.log.read_text()
    servers = {(host, str(port)) for host, port in zip(HOSTS, ports, strict=True)}
    others = crawl.peers() - servers
    assert servers <= crawl.peers()
    assert not {peer for peer in others if not peer[0].startswith('"')}, sorted(others)
    assert not (tmp_path / "home").exists()
    assert len([peer for peer in others if "redis" in peer[0]]) == len(others), sorted(others)
