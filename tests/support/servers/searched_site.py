"""A site whose records stand behind a search form: a database with a known answer.

Each record has some forty words, by Zipf's law, and a kind. The form finds records by one word and, if it is set, by
kind. As on real sites, a query shows a limited number of results, on pages, in an order of the site's own. Nothing but
the form leads to a record. Beside it the site has forms that change something; nobody may send them.
"""

from __future__ import annotations

import sys
import threading
import time
from bisect import bisect_left
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.support.servers.arrivals import arrived_s
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

KINDS: Final = ("atlas", "diary", "ledger", "letter", "map", "notice", "print", "sketch")
PAGE: Final = 20
CAP: Final = 100
FORBIDDEN: Final = "/private"
CHANGING: Final = ("/login", "/subscribe", "/record/delete", "/comment", "/cart", "/upload", "/vote")
_ROBOTS: Final = f"User-agent: *\nDisallow: {FORBIDDEN}\n"
_SYLLABLES: Final = ("ba", "do", "fe", "gu", "ki", "la", "mo", "ne", "pu", "ra", "so", "ti", "va", "zo", "lin", "mar")


class Hit(NamedTuple):
    """A request, by the seconds of the monotonic clock at which it came in and was answered."""

    begin: float
    end: float
    method: str
    target: str
    body: str = ""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path


class Record(NamedTuple):
    words: Sequence[str]
    kind: str


def new_records(count: int, *, words: int = 40, vocabulary: int = 6_000, seed: int = 11) -> list[Record]:
    """Return records whose words are drawn by Zipf's law: the word of rank r with a weight of 1 / (r + 3)."""
    dice = Random(seed)
    names = list({_name(dice) for _ in range(3 * vocabulary)})
    names = sorted(names)[:: max(1, len(names) // vocabulary)][:vocabulary]
    dice.shuffle(names)
    weights = [*accumulate(1 / (rank + 3) for rank in range(len(names)))]
    return [
        Record(
            list(dict.fromkeys(names[bisect_left(weights, dice.random() * weights[-1])] for _ in range(words))),
            KINDS[min(int(dice.expovariate(0.35)), len(KINDS) - 1)],
        )
        for _ in range(count)
    ]


def _name(dice: Random) -> str:
    return "".join(dice.choice(_SYLLABLES) for _ in range(dice.randint(2, 4)))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that was killed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class SearchedSite:
    """Serves records on a port of loopback while `serving` is entered. `method` is how its form is sent."""

    def __init__(
        self,
        records: Sequence[Record] = (),
        *,
        cap: int = CAP,
        page: int = PAGE,
        method: str = "get",
        address: str = "127.0.0.1",
    ) -> None:
        self.records = records
        self.hits: list[Hit] = []
        self._method = method
        self._cap, self._page = cap, page
        self._with: dict[str, list[int]] = {}
        order = [*range(len(records))]
        Random(5).shuffle(order)  # the site's own
        for number in order:
            for word in records[number].words:
                self._with.setdefault(word, []).append(number)
        self._ordered = order
        self._lock = threading.Lock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                begin = arrived_s(self.connection)
                sent = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode("latin-1")
                status, kind, body = site.answer(self.command, self.path, sent)
                data = body.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with site._lock:  # known before the answer is, and its end a little early
                    site.hits.append(Hit(begin, time.monotonic(), self.command, self.path, sent))
                self.wfile.write(data)

            do_POST = do_GET  # noqa: N815 - http.server's name

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = _Server((address, 0), Handler)
        self.url = f"http://{address}:{self.server.server_port}/"

    def serving(self) -> AbstractContextManager[ThreadingHTTPServer]:
        return at_work(self.server)

    def found(self, term: str, kind: str = "") -> list[int]:
        """Return the numbers of the records that a query shows, on all pages, in order."""
        numbers = self._with.get(term.lower(), []) if term else self._ordered
        return [number for number in numbers if not kind or self.records[number].kind == kind][: self._cap]

    def answer(self, method: str, target: str, sent: str = "") -> tuple[int, str, str]:
        path, query = urlsplit(target).path, parse_qs(sent or urlsplit(target).query)
        if path == "/robots.txt":
            return 200, "text/plain", _ROBOTS
        is_sent_as_said = method == "GET" or (path == "/search" and method.lower() == self._method)
        if not is_sent_as_said or path in CHANGING:
            return 403, "text/html", "<p>no</p>"
        if path == "/":
            return 200, "text/html", _page("Archive", _MENU + self._form() + _OTHER_FORMS)
        if path == "/search":
            return 200, "text/html", _page("Results", _MENU + self._form() + self._results(query))
        number = path.removeprefix("/record/")
        if number.isdecimal() and int(number) < len(self.records):
            record = self.records[int(number)]
            return 200, "text/html", _page(f"Record {number}", _MENU + f"<p>{' '.join(record.words)}</p>{record.kind}")
        return 200 if path in ("/about", "/help") else 404, "text/html", _page(path, _MENU)

    def _form(self) -> str:
        return f"<form action=/search method={self._method}>{_FIELDS}</form>"

    def _results(self, query: dict[str, list[str]]) -> str:
        term, kind = query.get("q", [""])[0], query.get("kind", [""])[0]
        number = int(query.get("page", ["1"])[0])
        found = self.found(term, kind)
        shown = found[(number - 1) * self._page : number * self._page]
        rows = "".join(f"<li><a href='/record/{one}'>{self.records[one].words[0]}</a></li>" for one in shown)
        pages = range(1, -(-len(found) // self._page) + 1)
        links = "".join(f"<a href='/search?q={term}&amp;kind={kind}&amp;page={one}'>{one}</a>" for one in pages)
        return f"<p>{term}: {len(found)} results</p><ol>{rows}</ol><nav>{links}</nav>"


_MENU: Final = f"<a href=/>Home</a> <a href=/about>About</a> <a href=/help>Help</a> <a href={FORBIDDEN}/x>Staff</a>"
_FIELDS: Final = (
    "<label for=q>Words</label><input id=q name=q type=search>"
    "<select name=kind><option value=''>any"
    + "".join(f"<option value={kind}>{kind}s" for kind in KINDS)
    + "</select><button>Search</button>"
)
_OTHER_FORMS: Final = (
    f"<form action={FORBIDDEN}/search><input name=q><button>Search the staff</button></form>"
    "<form action=/login method=post><input name=user><input name=pass type=password><button>Log in</button></form>"
    "<form action=/subscribe><input name=address placeholder='your e-mail'><button>Subscribe</button></form>"
    "<form action=/record/delete><input type=hidden name=id value=7><input name=q><button>Delete</button></form>"
    "<form action=/comment><input name=search><textarea name=text></textarea><button>Send</button></form>"
    "<form action=/cart><input name=q value=1><button>Add to cart</button></form>"
    "<form action=/upload enctype=multipart/form-data method=post><input name=q type=file><button>Find</button></form>"
    "<form action=/vote><select name=stars><option>1<option>2</select><button>Vote</button></form>"
)


def _page(title: str, body: str) -> str:
    return f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{body}</body></html>"
