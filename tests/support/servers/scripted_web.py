"""A web whose pages are written by scripts: ten kinds, each a host of its own, and what its servers were asked for.

Page p of a host leads to the pages 5p + 1 to 5p + 5, in the way of its kind, and to no page in its bytes, apart from
pages that redirect by a script. The scripts also ask for what they must not have: a path that robots.txt forbids, an
address inside, a tracker.
"""

from __future__ import annotations

import itertools
import json
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS: Final = (
    "client-list", "fetched", "history", "hash", "scrolled", "more", "timers", "written", "shadow", "redirect",
)  # fmt: skip
FAN: Final = 5
NETWORK: Final = "127.0.7.0/24"
LIBRARY, TRACKER, INSIDE = "library", "tracker", "inside"
ROBOTS: Final = b"User-agent: *\nDisallow: /private/\n"
FILL: Final = "The words of page {} are here so that it has a text of its own. "


class Asked(NamedTuple):
    """A request as its server saw it; times are seconds of one clock."""

    host: str
    path: str
    agent: str
    began: float
    ended: float


@dataclass
class ScriptedWeb:
    pages_each: int
    bases: dict[str, str] = field(default_factory=dict)
    log: list[Asked] = field(default_factory=list)
    extra: dict[str, str] = field(default_factory=dict)
    """Further pages, by path, of all hosts."""

    @property
    def seeds(self) -> list[str]:
        return [f"{self.bases[kind]}/p/0" for kind in KINDS]

    def expected(self) -> set[str]:
        """The URLs of all pages, apart from those that redirect."""
        return {f"{self.bases[kind]}/p/{page}" for kind in KINDS for page in range(self.pages_each)}

    def asked(self, host: str) -> list[Asked]:
        return sorted((each for each in list(self.log) if each.host == host), key=lambda each: each.began)

    def faults(self, delay_s: float, agent: str) -> list[str]:
        """What the logs call impolite or forbidden, one line each."""
        faults = [
            f"{LIBRARY} was asked {each.path}" for each in self.asked(LIBRARY) if each.path.startswith("/private")
        ]
        faults += [f"{host} was asked {each.path}" for host in (TRACKER, INSIDE) for each in self.asked(host)]
        faults += [f"{each.host}{each.path}: agent {each.agent}" for each in self.log if each.agent != agent]
        faults += [f"{each.host}{each.path} is forbidden" for each in self.log if "/private/" in each.path]
        for host in (*KINDS, LIBRARY):
            for before, after in itertools.pairwise(self.asked(host)):
                if after.began - before.ended < delay_s:
                    gap_ms = 1000 * (after.began - before.ended)
                    faults.append(f"{host}: {after.path} {gap_ms:.0f} ms after {before.path}")
        return faults


@contextmanager
def scripted_web(pages_each: int) -> Iterator[ScriptedWeb]:
    """Serve it below 127.0.7.0/24, each host at an address of its own; the one inside at 127.0.0.1."""
    web = ScriptedWeb(pages_each)
    with ExitStack() as stack:
        for number, host in enumerate((*KINDS, LIBRARY, TRACKER, INSIDE), 1):
            address = "127.0.0.1" if host == INSIDE else f"127.0.7.{number}"
            server = stack.enter_context(at_work(_Server((address, 0), _Handler)))
            server.web, server.kind = web, host
            web.bases[host] = f"http://{address}:{server.server_address[1]}"
        yield web


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    web: ScriptedWeb
    kind: str


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        began, web = time.monotonic(), self.server.web
        kind, body = _answer(web, self.server.kind, self.path)
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        agent = self.headers.get("User-Agent", "")
        web.log.append(Asked(self.server.kind, self.path, agent, began, time.monotonic()))
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - the names of the standard library

    def log_message(self, *_: object) -> None:
        """The web has a log."""


def _answer(web: ScriptedWeb, kind: str, path: str) -> tuple[str, bytes]:
    split = urlsplit(path)
    if path == "/robots.txt":
        return "text/plain", ROBOTS
    if path in web.extra:
        return "text/html", web.extra[path].encode()
    if path.endswith(".js"):
        return "text/javascript", _SCRIPTS.get(path, "window.helped = true").encode()
    if split.path == "/api":
        page = int(parse_qs(split.query)["page"][0])
        return "application/json", json.dumps(_children(web, page)).encode()
    _, form, number, *_ = [*split.path.split("/"), "", ""]
    if form not in ("p", "go") or not number.isdigit() or int(number) >= web.pages_each:
        return "text/html", b""
    return "text/html; charset=utf-8", _page(web, kind, form, int(number)).encode()


def _children(web: ScriptedWeb, page: int) -> list[int]:
    return [child for child in range(FAN * page + 1, FAN * page + FAN + 1) if child < web.pages_each]


def _page(web: ScriptedWeb, kind: str, form: str, page: int) -> str:
    children = json.dumps(_children(web, page))
    text = FILL.format(page)
    if form == "go":
        return f'<html><body><script>location.replace("/p/{page}")</script></body></html>'
    match kind:
        case "client-list":
            body = f"<div id=root></div><script>window.data = {children}</script><script src=/app.js></script>"
            body += f"<script src={web.bases[LIBRARY]}/library.js></script>"
            body += f"<script src={web.bases[LIBRARY]}/private/library.js></script>"
            body += f"<script src={web.bases[TRACKER]}/track.js></script>"
        case "fetched":
            body = f"<ul id=list></ul><script>window.page = {page}</script><script src=/fetch.js></script>"
            inside = f"{web.bases[INSIDE]}/secret"
            body += f'<script>fetch("/private/x.json").catch(() => 0); fetch("{inside}").catch(() => 0);'
            body += f'navigator.sendBeacon("/private/beacon", "x"); new Image().src = "{inside}.png"; try {{'
            body += f'new WebSocket("{inside.replace("http", "ws")}") }} catch {{}} open("/private/window");'
            body += f"const source = URL.createObjectURL(new Blob(['fetch(\"{inside}?worker\")']));"
            body += "new Worker(source); new SharedWorker(source)</script>"
            body += f"<link rel=prefetch href={inside}?link><iframe src={inside}?frame></iframe>"
            body += f"<form action={inside} id=form></form><script>form.submit()</script>"
        case "history":
            body = f"<div id=app>Loading...</div><script>window.count = {web.pages_each}</script>"
            body += "<script type=module src=/history.js></script>"
        case "hash":
            body = '<nav><a href="#/odd">Odd</a><a href="#/even">Even</a></nav><main id=view></main>'
            body += f"<script>window.data = {children}</script><script src=/hash.js></script>"
        case "scrolled":
            body = "<div class=infinite-scroll id=list style='min-height: 3000px'></div>"
            body += f"<script>window.data = {children}</script><script src=/scroll.js></script>"
        case "more":
            body = "<ul id=list></ul><button id=more>Load more</button>"
            body += f"<script>window.data = {children}</script><script src=/more.js></script>"
        case "timers":
            body = f"<div id=news></div><script>window.data = {children}</script><script src=/timers.js></script>"
        case "written":
            write = "document.write('<p><a href=\"/p/' + child + '\">page</a></p>')"
            body = f"<script>for (const child of {children}) {write}</script>"
        case "shadow":
            body = f"<page-list pages='{children}'></page-list><script src=/shadow.js></script>"
        case _:
            links = "".join(f"<a href=/go/{child}>page</a>" for child in _children(web, page))
            return f"<html><body><p>{text * 5}</p>{links}</body></html>"
    return f"<html><head><title>{kind} {page}</title></head><body>{body}</body></html>"


_ADD: Final = """
const add = (list, child) => { const item = document.createElement("li"), link = document.createElement("a");
  link.href = "/p/" + child; link.textContent = "Page " + child; item.append(link); list.append(item) };
"""
_SCRIPTS: Final = {
    "/app.js": _ADD + 'for (const child of data) add(document.getElementById("root"), child)',
    "/fetch.js": _ADD + 'fetch("/api?page=" + page).then((r) => r.json()).then((all) => { for (const child of all) '
    'add(document.getElementById("list"), child) })',
    "/history.js": _ADD + """
const app = document.getElementById("app");
const show = () => { app.textContent = ""; const page = +location.pathname.split("/")[2];
  for (let child = 5 * page + 1; child <= 5 * page + 5 && child < count; child++) add(app, child) };
addEventListener("popstate", show); show();
app.addEventListener("click", (e) => { if (!e.target.href) return;
  e.preventDefault(); history.pushState({}, "", e.target.href); show() });
""",
    "/hash.js": _ADD + """
const show = () => { const view = document.getElementById("view"); view.textContent = "";
  for (const child of data) if ((child % 2 ? "#/odd" : "#/even") === location.hash) add(view, child) };
addEventListener("hashchange", show); show();
""",
    "/scroll.js": _ADD + """
const list = document.getElementById("list"); let at = 0;
const more = () => { for (let n = 0; n < 2 && at < data.length; n++) add(list, data[at++]);
  list.style.minHeight = 3000 + 900 * at + "px" };
more(); addEventListener("scroll", () => { if (scrollY + innerHeight >= document.body.scrollHeight - 50) more() });
""",
    "/more.js": _ADD + """
const list = document.getElementById("list"), button = document.getElementById("more"); let at = 0;
const more = () => { for (let n = 0; n < 2 && at < data.length; n++) add(list, data[at++]);
  button.hidden = at >= data.length };
button.onclick = more; more();
""",
    "/timers.js": _ADD + """
const news = document.getElementById("news");
data.forEach((child, n) => setTimeout(() => add(news, child), 300 + 100 * n));
""",
    "/shadow.js": _ADD + """
customElements.define("page-list", class extends HTMLElement { connectedCallback() {
  const root = this.attachShadow({ mode: "closed" });
  for (const child of JSON.parse(this.getAttribute("pages"))) add(root, child) } });
""",
}  # fmt: skip
