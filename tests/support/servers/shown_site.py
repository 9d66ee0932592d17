"""A site whose pages look as they should only with all that they need: pictures, styles, fonts, scripts.

Each page shows a few of `PIECES`. Its files have colours of their own, so that one that is missing, or another in its
place, shows. Some are on a second host, some are packed, moved, or named in odd ways. The pages may also be written by
a script, from a file that it asks for.
"""

from __future__ import annotations

import gzip
import json
import random
import struct
import zlib
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOST: Final = "127.0.0.1"
OTHER_HOST: Final = "127.0.0.2"
PIECES_OF_A_PAGE: Final = 8
FONTS: Final = Path("/usr/share/fonts")


class File(NamedTuple):
    media_type: str
    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def colour(name: str) -> tuple[int, int, int]:
    red, green, blue = random.Random(name).randbytes(3)
    return red, green, blue


def css_colour(name: str) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour(name))


@cache
def png(name: str, wide: int = 48, high: int = 32) -> bytes:
    """A picture with a gradient of the colours of a name."""
    one, two = colour(name), colour(f"{name}!")
    row = b"".join(
        bytes((a * (wide - at) + b * at) // wide for a, b in zip(one, two, strict=True)) for at in range(wide)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    data = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for _ in range(high))))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + data + chunk(b"IEND", b"")


def svg(name: str) -> bytes:
    shape = f"<rect width='48' height='32' fill='{css_colour(name)}'/><circle cx='24' cy='16' r='9' fill='white'/>"
    return f"<svg xmlns='http://www.w3.org/2000/svg' width='48' height='32'>{shape}</svg>".encode()


@cache
def font() -> bytes:
    """The smallest font of this machine that has letters."""
    found = sorted(FONTS.rglob("*Mono*.ttf"), key=lambda path: path.stat().st_size) or sorted(FONTS.rglob("*.ttf"))
    assert found, f"there is no font below {FONTS}; run: scripts/install_system fonts-dejavu-core"
    return found[0].read_bytes()


def css(text: str) -> File:
    return File("text/css", text.encode())


def image(name: str) -> File:
    return File("image/png", png(name))


class Page:
    """A page that is being made: what it shows, and the files that this needs, by path."""

    def __init__(self, number: int, other: str) -> None:
        self.number = number
        self.other = other
        self.head: list[str] = []
        self.body: list[str] = []
        self.files: dict[str, File] = {}
        self.base = ""

    def add(self, ending: str, file: File) -> str:
        """Add a file of its own; its path is relative to the page."""
        self.files[f"/{self.number}/{ending}"] = file
        return ending

    def picture(self, name: str) -> str:
        return self.add(f"{name}.png", image(f"{self.number}/{name}"))


def plain(page: Page) -> None:
    page.body.append(f"<img src='{page.picture('plain')}' alt=picture>")


def of_densities(page: Page) -> None:
    one, two = page.picture("one"), page.picture("two")
    page.body.append(f"<img srcset='{one} 1x, {two} 2x' src='{two}' width=48 height=32>")


def of_widths(page: Page) -> None:
    small, large = page.picture("small"), page.picture("large")
    page.body.append(f"<img sizes=60px srcset='{small} 60w, {large} 600w' width=48 height=32>")


def of_sources(page: Page) -> None:
    drawn = page.add("drawn.svg", File("image/svg+xml", svg(f"{page.number}/drawn")))
    sources = f"<source media='(max-width: 10px)' srcset='{page.picture('narrow')}'><source srcset='{drawn}'>"
    page.body.append(f"<picture>{sources}<img src='{page.picture('fallback')}'></picture>")


def in_style_element(page: Page) -> None:
    page.head.append(f"<style>.e {{background: url( '{page.picture('element')}' ) repeat-x}}</style>")
    page.body.append("<p class=e>style element</p>")


def in_style_attribute(page: Page) -> None:
    page.body.append(f'<p style="background: url(&quot;{page.picture("attribute")}&quot;) repeat-x">attribute</p>')


def of_imported_sheets(page: Page) -> None:
    page.add("css/img/deep.png", image(f"{page.number}/deep"))
    page.add("css/third.css", css(".i {background: url(img/deep.png)} /* url(no.png) */"))
    page.add("css/second.css", css("@import 'third.css'; .i {border: 3px solid " + css_colour(str(page.number)) + "}"))
    first = page.add("first.css", css("@charset 'utf-8'; @import url(css/second.css) screen; .i {padding: 9px}"))
    page.head.append(f"<link rel=stylesheet href={first}>")
    page.body.append("<p class=i>imported</p>")


def of_a_font(page: Page) -> None:
    page.files["/shared/letters.ttf"] = File("font/ttf", font())
    page.head.append(
        "<style>@font-face {font-family: Own; src: url(/shared/none.woff2) format('none'), url(/shared/letters.ttf)}"
        ".f {font: 20px Own}</style>"
    )
    page.body.append(f"<p class=f>Letters of a font {page.number}</p>")


def written_by_a_script(page: Page) -> None:
    code = f"document.querySelector('.s').style.color = '{css_colour(f'{page.number}/script')}';"
    source = page.add(
        "script.js", File("text/javascript", f"{code} document.querySelector('.s').append('!');".encode())
    )
    page.body.append(f"<p class=s>script</p><script src={source}></script>")


def drawn_by_a_module(page: Page) -> None:
    part = page.add("part.js", File("text/javascript", f"export default '{css_colour(f'{page.number}/m')}';".encode()))
    code = (
        "import fill from './part.js'; const one = document.querySelector('canvas').getContext('2d');"
        "one.fillStyle = fill; one.fillRect(5, 5, 50, 20);"
    )
    if page.number % 2:
        page.head.append(f"<link rel=modulepreload href={part}>")
    source = page.add("module.js", File("text/javascript", code.encode()))
    page.body.append(f"<canvas width=60 height=30></canvas><script type=module src={source}></script>")


def lazy(page: Page) -> None:
    page.body.append(
        f"<img class=lazy data-src='{page.picture('lazy')}' width=48 height=32><script>"
        "for (const one of document.querySelectorAll('.lazy')) one.src = one.dataset.src</script>"
    )


def in_svg(page: Page) -> None:
    circle = f"<circle cx='16' cy='16' r='14' fill='{css_colour(f'{page.number}/use')}'/>"
    sprite = f"<svg xmlns='http://www.w3.org/2000/svg'><symbol id='s'>{circle}</symbol></svg>"
    used = page.add("sprite.svg", File("image/svg+xml", sprite.encode()))
    inner = f"<use href='{used}#s'/><image href='{page.picture('within')}' x='40' width='48' height='32'/>"
    page.body.append(f"<svg width=100 height=34>{inner}</svg>")


def embedded(page: Page) -> None:
    one = page.add("object.svg", File("image/svg+xml", svg(f"{page.number}/object")))
    two = page.add("embed.svg", File("image/svg+xml", svg(f"{page.number}/embed")))
    page.body.append(f"<object type=image/svg+xml data={one}></object><embed type=image/svg+xml src={two}>")


def obsolete(page: Page) -> None:
    page.body.append(
        f"<table background='{page.picture('table')}'><tr><td background='{page.picture('cell')}'>cell<td>other</table>"
        f"<input type=image src='{page.picture('button')}'>"
    )


def poster(page: Page) -> None:
    page.body.append(f"<video poster='{page.picture('poster')}' width=96 height=64></video>")


def of_image_set(page: Page) -> None:
    one, two = page.picture("set-one"), page.picture("set-two")
    page.head.append(f"<style>.t {{background: image-set('{one}' 1x, url({two}) 2x type('image/png'))}}</style>")
    page.body.append("<p class=t>image set</p>")


def elsewhere(page: Page) -> None:
    shared = f"/shared/{page.number % 7}"
    page.files[f"{shared}.png"], page.files[f"{shared}.css"] = (
        image(shared),
        css(f".o {{background: url({shared}.png)}}"),
    )
    page.head.append(f"<link rel=stylesheet href=//{page.other}{shared}.css>")
    page.body.append("<p class=o>other host</p>")


def moved(page: Page) -> None:
    page.add("there.png", image(f"{page.number}/there"))
    found = page.add("moved.png", File("text/html", b"", 302, (("Location", f"/{page.number}/there.png"),)))
    page.body.append(f"<img src={found} width=48 height=32>")


def packed(page: Page) -> None:
    text = f".g {{outline: 4px solid {css_colour(f'{page.number}/packed')}; margin: 6px}}"
    file = File("text/css", gzip.compress(text.encode()), 200, (("Content-Encoding", "gzip"),))
    page.head.append(f"<link rel=stylesheet href={page.add('packed.css', file)}>")
    page.body.append("<p class=g>packed</p>")


def oddly_named(page: Page) -> None:
    page.files[f"/{page.number}/é (1).png?ü=&x=1"] = image(f"{page.number}/odd")
    page.body.append("<img src='é (1).png?ü=&amp;x=1#fragment' width=48 height=32>")


def framed(page: Page) -> None:
    page.add("framed.png", image(f"{page.number}/framed"))
    inner = "<!doctype html><body style='margin: 0; background: url(framed.png)'>frame"
    frame = page.add("frame.html", File("text/html; charset=utf-8", inner.encode()))
    page.body.append(f"<iframe src={frame} width=120 height=40></iframe>")


def below_a_base(page: Page) -> None:
    page.files[f"/{page.number}/base/below.png"] = image(f"{page.number}/below")
    page.base = f"<base href=/{page.number}/base/../>"
    page.body.append("<img src=base/below.png>")


def of_properties(page: Page) -> None:
    border, bullet, mask, text = (page.picture(name) for name in ("border", "bullet", "mask", "text"))
    rules = (
        f"border: 8px solid; border-image: url({border}) 8; list-style-image: url({bullet}); -webkit-mask: url({mask})"
    )
    sheet = page.add("properties.css", css(f".p {{{rules}}} .p::before {{content: url('{text}')}}"))
    page.head.append(f"<link rel='stylesheet alternate' href={sheet}><link rel=stylesheet href={sheet}>")
    page.body.append("<ul><li class=p>properties</ul>")


def of_icons(page: Page) -> None:
    icon = page.add("icon.png", image(f"{page.number}/icon"))
    manifest = page.add("site.webmanifest", File("application/manifest+json", b'{"name": "site"}'))
    page.head.append(f"<link rel='shortcut icon' href={icon}><link rel=manifest href={manifest}>")


SHELL: Final = "<div id=app></div><script src=/app.js></script>"
WRITER: Final = b"""
fetch("content.json").then((answer) => answer.json()).then((page) => {
  document.head.insertAdjacentHTML("beforeend", page.head);
  document.getElementById("app").innerHTML = page.body;
});
"""

PIECES: Final[tuple[Callable[[Page], None], ...]] = (
    plain, of_densities, of_widths, of_sources, in_style_element, in_style_attribute, of_imported_sheets, of_a_font,
    written_by_a_script, drawn_by_a_module, lazy, in_svg, embedded, obsolete, poster, of_image_set, elsewhere, moved,
    packed, oddly_named, framed, below_a_base, of_properties, of_icons,
)  # fmt: skip


class ShownSite:
    """The files of a site by path and query, and the paths of its pages."""

    def __init__(self, pages: int, other: str, seed: int = 7, *, is_scripted: bool = False) -> None:
        self.pages = [f"/{number}/" for number in range(pages)]
        self.files: dict[str, File] = {"/app.js": File("text/javascript", WRITER)}
        dice = random.Random(seed)
        for number in range(pages):
            page = Page(number, other)
            # Each piece is shown by the first pages, however few there are.
            first = number * PIECES_OF_A_PAGE % len(PIECES)
            chosen = [PIECES[(first + at) % len(PIECES)] for at in range(PIECES_OF_A_PAGE)]
            for piece in chosen if number < 3 else dice.sample(PIECES, PIECES_OF_A_PAGE):
                piece(page)
            self.files |= page.files
            self.files[f"/{number}/"] = self._shell(page) if is_scripted else self._html(page)

    def _shell(self, page: Page) -> File:
        content = {"head": page.base + "".join(page.head), "body": "".join(page.body) + self._links(page)}
        self.files[f"/{page.number}/content.json"] = File("application/json", json.dumps(content).encode())
        return File("text/html", f"<!doctype html><meta charset=utf-8><title>{page.number}</title>{SHELL}".encode())

    def _links(self, page: Page) -> str:
        ways = [2 * page.number + 1, 2 * page.number + 2]
        return "".join(f"<a href=/{to}/>page {to}</a> " for to in ways if to < len(self.pages))

    def _html(self, page: Page) -> File:
        head = f"<meta charset=utf-8>{page.base}<title>Page {page.number}</title>{''.join(page.head)}"
        body = f"<h1>Page {page.number}</h1>{''.join(page.body)}<nav>{self._links(page)}</nav>"
        html = f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode()
        if page.number % 3:
            return File("text/html", html)
        return File("text/html", gzip.compress(html), 200, (("Content-Encoding", "gzip"),))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        path = unquote_to_bytes(self.path).decode("utf-8", "replace")
        file = self.server.site.files.get(path, File("text/plain", b"not here", 404))
        self.send_response(file.status)
        for name, value in (("Content-Type", file.media_type), *file.headers, ("Content-Length", str(len(file.body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(file.body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, made: Callable[[int], ShownSite]) -> None:
        super().__init__((host, port), _Handler)
        self.site = made(self.server_address[1])

    def handle_error(self, *_: Any) -> None:
        """Say nothing of browsers that hang up."""


@contextmanager
def shown_site(pages: int, *, is_scripted: bool = False) -> Iterator[tuple[ShownSite, str]]:
    """Serve a site on two hosts; yields it, and the URL above its paths."""
    with ExitStack() as stack:
        made = partial(ShownSite, is_scripted=is_scripted)
        server = stack.enter_context(at_work(_Server(HOST, 0, lambda port: made(pages, f"{OTHER_HOST}:{port}"))))
        port = server.server_address[1]
        stack.enter_context(at_work(_Server(OTHER_HOST, port, lambda _: server.site)))
        yield server.site, f"http://{HOST}:{port}"
