"""Serves pages of one size and number of links: origin SHAPE-AS-JSON, in a process of its own.

Host i is 127.64.i/256.i%256. A tenth of a page's links lead to its children, to which no other page links, the others
to the first pages of its host. A line on stdout has the port; each line on stdin is answered with the pages served so
far.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import Final, NamedTuple

from bigcrawl_simweb.serve.listen import open_listeners
from bigcrawl_simweb.serve.running import made_up_context

NEW_SHARE: Final = 10
_WORDS: Final = 1_000_000  # bytes of text, from which each page takes a part of its own
_HEAD_END: Final = b"\r\n\r\n"


class Shape(NamedTuple):
    """`is_kept`: connections serve several pages."""

    page_bytes: int
    links: int
    is_secure: bool = False
    is_kept: bool = True
    hosts: int = 200
    seeds: int = 40_000


def address(host: int) -> str:
    return f"127.64.{host >> 8}.{host & 255}"


def seeds(shape: Shape, port: int) -> list[str]:
    """Return the first pages of all hosts, host by host in turn."""
    scheme = "https" if shape.is_secure else "http"
    return [
        f"{scheme}://{address(host)}:{port}/{number}"
        for number in range(shape.seeds // shape.hosts)
        for host in range(shape.hosts)
    ]


class Pages:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.served = 0
        draw = random.Random(7)
        words = ["".join(draw.choices("etaoinshrdlu", k=draw.randint(2, 9))) for _ in range(4_000)]
        text = " ".join(draw.choices(words, k=_WORDS // 5))
        self._text = text.encode()[:_WORDS]
        known = shape.links - shape.links // NEW_SHARE
        self._menu = b"".join(b'<li><a href="/%d">page %d</a>\n' % (n, n) for n in range(known))

    def answer(self, target: bytes) -> bytes:
        if target == b"/robots.txt":
            return self._with_head(b"text/plain", b"User-agent: *\nDisallow: /private/\n")
        self.served += 1
        number = int(target[1:])
        new = self.shape.links // NEW_SHARE
        first = (number + 1) * new + self.shape.seeds
        children = b"".join(b'<li><a href="/%d">child</a>\n' % n for n in range(first, first + new))
        body = b"<html><title>%d</title><ul>%s%s</ul><p>" % (number, self._menu, children)
        wanted = max(0, self.shape.page_bytes - len(body))
        at = number * 7919 % (_WORDS - wanted)
        return self._with_head(b"text/html; charset=utf-8", body + self._text[at : at + wanted])

    def _with_head(self, kind: bytes, body: bytes) -> bytes:
        close = b"" if self.shape.is_kept else b"Connection: close\r\n"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s\r\n" % (kind, len(body), close)
        return head + body


class Connection(asyncio.Protocol):
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while _HEAD_END in self._received:
            head, _, self._received = self._received.partition(_HEAD_END)
            self._transport.write(self._pages.answer(head.split(b" ", 2)[1]))
            if not self._pages.shape.is_kept:
                self._transport.close()


async def serve(shape: Shape) -> None:
    loop = asyncio.get_running_loop()
    pages = Pages(shape)
    context = made_up_context() if shape.is_secure else None
    for sock in open_listeners(map(address, range(shape.hosts)), 0):
        await loop.create_server(lambda: Connection(pages), sock=sock, ssl=context, backlog=4096)
        port = sock.getsockname()[1]
    print(port, flush=True)  # noqa: T201
    while await asyncio.to_thread(sys.stdin.readline):
        print(pages.served, flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(serve(Shape(**json.loads(sys.argv[1]))))
