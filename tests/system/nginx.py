"""Debian's nginx as the origin server of the system checks, and its access log as the witness.

One real nginx with its own prefix, configuration, pid file and log below a temporary directory serves every
site on its own loopback address, all on one free port. The listening sockets are bound here and inherited by
nginx (the environment variable NGINX, its way to hand them over in an upgrade): no other process can take the
port in between, and a connection made before nginx has read its configuration waits in the backlog instead of
failing.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bigcrawl_simweb.check.checker import Exchange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    from tests.system.corpora import Site

_BACKLOG = 511
_START_SECONDS = 120.0
_STOP_SECONDS = 10.0

# Tabs cannot occur in a request line or a header value that nginx accepts unescaped ("default" escapes them).
_LOG_FIELDS = (
    "$msec", "$request_time", "$connection", "$server_addr",
    "$request_method", "$request_uri", "$status", "$body_bytes_sent", "$http_user_agent",
)  # fmt: skip

_CONFIGURATION = """\
{user}
worker_processes 1;
pid {prefix}/nginx.pid;
error_log {prefix}/error.log notice;
events {{ worker_connections 1024; }}
http {{
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    log_format exchanges escape=default "{log_format}";
    access_log {prefix}/access.log exchanges;
    client_body_temp_path {prefix}/body;
    proxy_temp_path {prefix}/proxy;
    fastcgi_temp_path {prefix}/fastcgi;
    uwsgi_temp_path {prefix}/uwsgi;
    scgi_temp_path {prefix}/scgi;
    autoindex off;
    # A host's connection may stay open over its delay; nothing here is to look like an unreliable server.
    keepalive_timeout 300s;
    keepalive_requests 100000;
{servers}}}
"""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One line of the access log; times are the server's, in ms since the epoch."""

    start_ms: int
    end_ms: int
    connection: int
    address: str
    method: str
    target: str
    status: int
    body_bytes: int
    user_agent: str

    def as_exchange(self) -> Exchange:
        return Exchange(
            host=self.address,
            target=self.target,
            status=self.status,
            start_ms=self.start_ms,
            end_ms=self.end_ms,
        )


class NginxSites:
    """A running nginx that serves `sites`; a context manager. Stopped by its own pid."""

    def __init__(self, sites: Sequence[Site], prefix: Path) -> None:
        self.sites = tuple(sites)
        self.port = 0
        self._prefix = prefix
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        state = "stopped" if self._process is None else f"pid {self._process.pid}"
        return f"<NginxSites {len(self.sites)} sites, port {self.port}, {state}>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def url(self, site: Site, target: str = "/") -> str:
        return f"http://{site.address}:{self.port}{target}"

    @property
    def seeds(self) -> list[str]:
        """The index pages of every site."""
        return [self.url(site, seed) for site in self.sites for seed in site.seeds]

    @property
    def hosts(self) -> set[str]:
        """`address:port` of every site."""
        return {f"{site.address}:{self.port}" for site in self.sites}

    def start(self) -> None:
        """Bind the addresses, write the configuration and run nginx in the foreground."""
        binary = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
        if binary is None:
            raise FileNotFoundError("nginx is not installed; run scripts/install_system as root")
        self._prefix.mkdir(parents=True, exist_ok=True)
        listeners = _bind([site.address for site in self.sites])
        self.port = listeners[0].getsockname()[1]
        configuration = self._prefix / "nginx.conf"
        configuration.write_text(self._configuration())
        descriptors = [listener.fileno() for listener in listeners]
        try:
            with (self._prefix / "stderr.log").open("wb") as stderr:
                self._process = subprocess.Popen(
                    [binary, "-p", str(self._prefix), "-c", str(configuration), "-g", "daemon off;"],
                    env={**os.environ, "NGINX": "".join(f"{descriptor};" for descriptor in descriptors)},
                    pass_fds=descriptors,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                )
        finally:
            for listener in listeners:
                listener.close()
        self._expect_answer()

    def stop(self) -> None:
        """End nginx at once; what it has answered is in the log."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def requests(self, user_agent: str = "") -> list[LoggedRequest]:
        """Every request logged so far whose User-Agent begins with `user_agent`, in order of its end."""
        return [request for request in self._logged() if request.user_agent.startswith(user_agent)]

    def exchanges(self, user_agent: str = "") -> list[Exchange]:
        """The same as the simulated web's log holds it, for the same checks."""
        return [request.as_exchange() for request in self.requests(user_agent)]

    def _logged(self) -> Iterator[LoggedRequest]:
        log = self._prefix / "access.log"
        if not log.exists():
            return
        for line in log.read_text("utf-8").splitlines(keepends=True):
            if line.endswith("\n"):  # the last one may be in the middle of its write
                yield parse_log_line(line.rstrip("\n"))

    def _expect_answer(self) -> None:
        """Wait until a worker answers; a nginx that could not start closes its listeners instead."""
        try:
            with socket.create_connection((self.sites[0].address, self.port), _START_SECONDS) as connection:
                connection.sendall(b"GET /robots.txt HTTP/1.0\r\nUser-Agent: start\r\n\r\n")
                answered = connection.recv(1)
        except OSError:
            answered = b""
        if not answered:
            self.stop()
            raise RuntimeError(f"nginx did not start: {(self._prefix / 'stderr.log').read_text()[-2000:]}")

    def _configuration(self) -> str:
        return _CONFIGURATION.format(
            # Started by root, workers would otherwise be a user who may not read the temporary directory.
            user="user root;" if os.geteuid() == 0 else "",
            prefix=self._prefix,
            log_format="\\t".join(_LOG_FIELDS),
            servers="".join(self._server(site) for site in self.sites),
        )

    def _server(self, site: Site) -> str:
        lines = [f"listen {site.address}:{self.port};", f"root {site.root};", "index index.html;"]
        if site.robots is None:
            lines.append("location = /robots.txt { return 404; }")
        else:
            robots = self._prefix / f"robots-{site.name}.txt"
            robots.write_text(site.robots)
            lines.append(f"location = /robots.txt {{ alias {robots}; }}")
        for path, address in site.redirects.items():
            lines.append(f"location {path} {{ return 301 http://{address}:{self.port}$request_uri; }}")
        return "    server {\n" + "".join(f"        {line}\n" for line in lines) + "    }\n"


def parse_log_line(line: str) -> LoggedRequest:
    """Read one line of the access log. The start is the end less the duration, both in whole ms there."""
    end, duration, connection, address, method, target, status, body_bytes, user_agent = line.split("\t")
    end_ms = _milliseconds(end)
    return LoggedRequest(
        start_ms=end_ms - _milliseconds(duration),
        end_ms=end_ms,
        connection=int(connection),
        address=address,
        method=method,
        target=target,
        status=int(status),
        body_bytes=int(body_bytes),
        user_agent=user_agent,
    )


def _milliseconds(seconds: str) -> int:
    """'12.345' -> 12345, without a float in between."""
    whole, fraction = seconds.split(".")
    return int(whole) * 1000 + int(fraction)


def _bind(addresses: Sequence[str]) -> list[socket.socket]:
    """Listen on every address, on one port that is free on all of them."""
    for _ in range(50):
        port, bound = 0, []
        try:
            for address in addresses:
                listener = socket.create_server((address, port), backlog=_BACKLOG)
                bound.append(listener)
                port = listener.getsockname()[1]
        except OSError:
            for listener in bound:
                listener.close()
        else:
            return bound
    raise RuntimeError(f"no port is free on all of {addresses[0]} to {addresses[-1]}")
