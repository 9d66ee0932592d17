"""Servers that plug-ins talk to: an API as Zyte's, which fetches pages, and proxies that work or refuse."""

from __future__ import annotations

import base64
import http.client
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

TIMEOUT_S = 120
_HOPS_MAX = 5
Answer = tuple[int, list[tuple[str, str]], bytes]


def ask(url: str, headers: dict[str, str]) -> Answer:
    """Ask once."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_S)
    try:
        connection.request("GET", parts.path or "/", headers=headers)
        response = connection.getresponse()
        return response.status, response.getheaders(), response.read()
    finally:
        connection.close()


class _Server(BaseHTTPRequestHandler):
    def send(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in {"content-length", "connection", "date", "server"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
        """Nobody reads it."""


class Api(_Server):
    """Takes what scrapy-zyte-api sends, and answers as Zyte's documentation says; it follows redirects itself."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.headers.get("Authorization", "").startswith("Basic "):
            self.fail(401, "/auth/key-not-found")
            return
        url = asked["url"]
        try:
            for _ in range(_HOPS_MAX):
                status, headers, body = ask(url, {"User-Agent": "the browser of the API"})
                location = next((value for name, value in headers if name == "Location"), "")
                if not location or asked.get("followRedirect") is False:
                    break
                url = urljoin(url, location)
        except OSError:
            self.fail(520, "/download/temporary-error")
            return
        given: dict[str, Any] = {"url": url, "statusCode": status}
        if asked.get("httpResponseBody"):
            given["httpResponseBody"] = base64.b64encode(body).decode()
        if asked.get("httpResponseHeaders"):
            given["httpResponseHeaders"] = [{"name": name, "value": value} for name, value in headers]
        if asked.get("browserHtml"):
            given["browserHtml"] = body.decode().replace("</title>", " in a browser</title>")
        self.send(200, [("Content-Type", "application/json")], json.dumps(given).encode())

    def fail(self, status: int, kind: str) -> None:
        error = {"type": kind, "title": kind, "status": status, "detail": "the test's"}
        self.send(status, [("Content-Type", "application/problem+json")], json.dumps(error).encode())


class Proxy(_Server):
    """Fetches what it is asked for by an absolute URL."""

    def do_GET(self) -> None:
        try:
            self.send(*ask(self.path, {name: value for name, value in self.headers.items() if name != "Connection"}))
        except OSError:
            self.send(502, [], b"no answer")


class BannedProxy(_Server):
    """One that sites do not answer any more."""

    def do_GET(self) -> None:
        self.send(403, [], b"go away")


def server(kind: type[_Server], address: str = "127.84.6.1") -> AbstractContextManager[ThreadingHTTPServer]:
    """One at work."""
    made = ThreadingHTTPServer((address, 0), kind)
    made.daemon_threads = True
    return at_work(made)


def url_of(server: ThreadingHTTPServer) -> str:
    return f"http://{server.server_address[0]!s}:{server.server_port}"
