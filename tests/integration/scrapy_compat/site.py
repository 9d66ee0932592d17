"""A small site with everything a spider may meet, on loopback addresses of its own; it logs each request.

The paths:

    /                     200, a page that links to /page/1 .. /page/3
    /page/<n>             200, a page that links to nothing
    /form                 200, a page with a form for /echo/form
    /echo/...             200, what came as JSON: method, headers, body; any method
    /status/<code>        that status
    /flaky/<n>/...        503 for the first n requests, then 200
    /hold                 200 once the test has released it
    /redirect/<name>      see `_redirects`
    /cookie-gate          302 to itself with a cookie, 200 for who brings it
    /picture/...          200, a picture
    /private/...          200, and forbidden by robots.txt
    /shop/...             categories, products and pages of them, for a CrawlSpider
    /sitemap.xml          an index of a plain and a gzipped sitemap, named in robots.txt
"""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import time
import zlib
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NET, HOSTS = "127.83.0", 5
CATEGORIES, PRODUCTS = 2, 3
HOLD_S_MAX = 120
_SITEMAP = "http://www.sitemaps.org/schemas/sitemap/0.9"


@dataclass(frozen=True, slots=True)
class Hit:
    """A request as the server saw it; times are seconds of one clock."""

    origin: str
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    started: float
    ended: float


Answer = tuple[int, bytes, list[tuple[str, str]]]


class Site:
    """Several hosts of it, `origins`, at addresses of `net`, and `refusing`, an origin where nobody listens."""

    def __init__(self, net: str = NET) -> None:
        self.hits: list[Hit] = []
        self.released = threading.Event()
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._servers = [_Server((f"{net}.{number}", 0), self) for number in range(1, HOSTS + 1)]
        self._deaf = f"{net}.{HOSTS + 1}"
        self.origins = [server.origin for server in self._servers]
        self._cleanup = ExitStack()
        self.refusing = ""

    def __enter__(self) -> Self:
        self.refusing = self._cleanup.enter_context(_bound_but_deaf(self._deaf))
        for server in self._servers:
            self._cleanup.enter_context(at_work(server))
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def forget(self) -> None:
        """Begin a new log; flaky pages fail again, and held ones wait again."""
        with self._lock:
            self.hits = []
            self._counts.clear()
        self.released.clear()

    def paths(self, prefix: str = "/") -> list[str]:
        """The paths that were asked for, in order, robots.txt left out."""
        return [hit.path for hit in self.pages() if hit.path.startswith(prefix)]

    def pages(self) -> list[Hit]:
        """All hits but those of robots.txt, in order of their start."""
        with self._lock:
            hits = sorted(self.hits, key=lambda hit: hit.started)
        return [hit for hit in hits if hit.path != "/robots.txt"]

    def note(self, hit: Hit) -> None:
        with self._lock:
            self.hits.append(hit)

    def count(self, path: str) -> int:
        """How many times the path was asked for, this time included."""
        with self._lock:
            self._counts[path] += 1
            return self._counts[path]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], site: Site) -> None:
        super().__init__(address, _Handler)
        self.site = site
        self.origin = f"http://{address[0]}:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A crawler that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def answer(self) -> None:
        started = time.monotonic()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, content, headers = self._route(body)
        hit = Hit(
            origin=self.server.origin,
            method=self.command,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
            started=started,
            ended=time.monotonic(),
        )
        self.server.site.note(hit)
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_HEAD = answer  # noqa: N815 - the base class' names

    def _route(self, body: bytes) -> Answer:
        path = self.path.partition("?")[0]
        if path in _FIXED:
            return _FIXED[path](self.server.origin)
        kind, _, rest = path[1:].partition("/")
        if kind in _BELOW:
            return _BELOW[kind]
        match kind:
            case "echo":
                return self._echo(body)
            case "status":
                return int(rest), b"status " + rest.encode(), []
            case "flaky":
                fails = int(rest.partition("/")[0])
                return (503, b"later", []) if self.server.site.count(path) <= fails else _html("flaky")
            case "hold":
                self.server.site.released.wait(HOLD_S_MAX)
            case "redirect":
                return _redirects(self.server.site)[rest]
            case "cookie-gate" if "gate=open" not in self.headers.get("Cookie", ""):
                return 302, b"", [("Location", path), ("Set-Cookie", "gate=open; Path=/")]
            case "shop":
                return _shop(rest)
        return _html(path)

    def _echo(self, body: bytes) -> Answer:
        headers = {name.lower(): self.headers.get_all(name) for name in self.headers}
        seen: dict[str, Any] = {"method": self.command, "headers": headers, "body": body.decode("latin-1")}
        return 200, json.dumps(seen).encode(), [("Content-Type", "application/json")]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
        """The log is the site's."""


@contextmanager
def _bound_but_deaf(address: str) -> Iterator[str]:
    """An origin whose port is taken, so that nobody else can listen there, and refuses connections."""
    with socket.socket() as bound:
        bound.bind((address, 0))
        yield f"http://{address}:{bound.getsockname()[1]}"


def _html(title: str, *links: str) -> Answer:
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    body = f"<html><head><title>{title}</title></head><body>{anchors}</body></html>"
    return 200, body.encode(), [("Content-Type", "text/html; charset=utf-8")]


def _redirects(site: Site) -> dict[str, Answer]:
    here, other, *_ = site.origins
    targets = {
        "same": (302, "/landed/same?x=1#part"),
        "cross": (301, f"{other}/landed/cross"),
        "chain": (302, f"{other}/redirect/chain-back"),
        "chain-back": (302, f"{here}/landed/chain"),
        "post-303": (303, "/echo/post-303"),
        "post-307": (307, "/echo/post-307"),
        "loop-a": (302, "/redirect/loop-b"),
        "loop-b": (302, "/redirect/loop-a"),
        "forever": (302, "/redirect/forever"),
    }
    return {name: (status, b"", [("Location", target)]) for name, (status, target) in targets.items()}


def _shop(path: str) -> Answer:
    """The shop's categories and products; products link to a neighbour and to what robots.txt forbids."""
    kind, _, name = path.partition("/")
    if kind == "category":
        return _html(f"category {name}", *(f"/shop/product/{name}-{number}" for number in range(PRODUCTS)))
    if kind == "product":
        category, _, number = name.partition("-")
        following = (int(number) + 1) % PRODUCTS
        return _html(f"product {name}", f"/shop/product/{category}-{following}", "/shop/", "/private/basket")
    return _html("shop", *(f"/shop/category/{number}" for number in range(CATEGORIES)))


def _robots(origin: str) -> Answer:
    text = f"User-agent: *\nDisallow: /private/\nSitemap: {origin}/sitemap.xml\n"
    return 200, text.encode(), [("Content-Type", "text/plain")]


def _sitemap_index(origin: str) -> Answer:
    names = ("sitemap-a.xml", "sitemap-b.xml.gz")
    entries = "".join(f"<sitemap><loc>{origin}/{name}</loc></sitemap>" for name in names)
    text = f'<?xml version="1.0"?><sitemapindex xmlns="{_SITEMAP}">{entries}</sitemapindex>'
    return 200, text.encode(), [("Content-Type", "application/xml")]


def _sitemap(origin: str, numbers: range) -> bytes:
    entries = "".join(f"<url><loc>{origin}/page/{number}</loc></url>" for number in numbers)
    return f'<?xml version="1.0"?><urlset xmlns="{_SITEMAP}">{entries}</urlset>'.encode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


_SIDE = 32
# A grey square.
_PICTURE = b"".join(
    (
        b"\x89PNG\r\n\x1a\n",
        _chunk(b"IHDR", struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 0, 0, 0, 0)),
        _chunk(b"IDAT", zlib.compress((b"\0" + b"\x80" * _SIDE) * _SIDE)),
        _chunk(b"IEND", b""),
    )
)
_FORM = (
    200,
    b'<form action="/echo/form" method="post"><input name="user"><input type="hidden" name="token" value="t"></form>',
    [("Content-Type", "text/html")],
)
_FIXED: dict[str, Callable[[str], Answer]] = {
    "/": lambda origin: _html("home", "/page/1", "/page/2", "/page/3"),
    "/form": lambda _: _FORM,
    "/robots.txt": _robots,
    "/sitemap.xml": _sitemap_index,
    "/sitemap-a.xml": lambda origin: (200, _sitemap(origin, range(3)), [("Content-Type", "application/xml")]),
    "/sitemap-b.xml.gz": lambda origin: (
        200,
        gzip.compress(_sitemap(origin, range(2, 6)), mtime=0),
        [("Content-Type", "application/gzip")],
    ),
}
_REFRESH = '<html><head><meta http-equiv="refresh" content="0; url=/landed/refresh"></head></html>'
_BELOW: dict[str, Answer] = {
    "picture": (200, _PICTURE, [("Content-Type", "image/png")]),
    "refresh": (200, _REFRESH.encode(), [("Content-Type", "text/html")]),
    "unpacked": (200, b"\0\1 was never packed", [("Content-Type", "text/html"), ("Content-Encoding", "gzip")]),
}
