"""What a row of the tables is: a request, the bytes it is answered with, and what may differ from Scrapy.

The first segment of a URL's path is the case's name. That is how the origin knows its answer, and how the tests
find what the origin saw. Places in URLs and meta stand as `{plain}`, `{other}`, `{tls}`, `{proxy}`, `{deaf}`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class End(Enum):
    """What the origin does with the connection after an answer; without one of these it stays open."""

    CLOSE = "close"
    RESET = "reset"
    HOLD = "hold until the client hangs up"


NOTHING = "nothing"
"""Stands for a key that is not there."""

Part = bytes | float | End
"""Bytes to send, seconds to rest, or an end."""

Answer = tuple[Part, ...]
Headers = tuple[tuple[str, str], ...]


def answer(body: bytes = b"", *headers: tuple[str, str], status: str = "200 OK") -> Answer:
    """A well-formed answer; a Content-Length is added."""
    lines = [f"{name}: {value}" for name, value in (*headers, ("Content-Length", str(len(body))))]
    return ("\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1") + body,)


def page(title: str = "page", *headers: tuple[str, str], status: str = "200 OK") -> Answer:
    """An HTML page."""
    text = f"<html><head><title>{title}</title></head><body><p>{title}</p></body></html>"
    return answer(text.encode(), ("Content-Type", "text/html; charset=utf-8"), *headers, status=status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request of a case; `request` holds keywords of Scrapy's Request."""

    url: str
    request: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row.

    Args:
        name: of [a-z0-9-], also the first segment of the path.
        answers: the n-th is for the n-th request that the origin gets; the last one for all further ones.
        url: of the first request; by default `{plain}/<name>/`.
        request: keywords of the first request, as for `Step`.
        then: further requests, each made in the callback or errback of the one before.
        files: URLs of files that the callback's item names, for Scrapy's FilesPipeline.
        by_engine: the requests are made with `engine.download_async` in a callback, and meet no scheduler.
        ours: what bigcrawl does otherwise on purpose: a place and the value that stands there with bigcrawl, NOTHING
            where it has none, or a function that makes it of stock's. Places begin with `record.<step>` or
            `served.<request>`: "record.-1.meta.download_slot".
        ours_watched: as `ours`, for the run that is watched alone; its places may also begin with `signals.<n>`.
        counted: by how much bigcrawl's stats differ because of the row; what a request that the origin saw once
            more adds to `downloader/request_*` is counted by itself.
        why: the reason; not empty where one of the others is not.
    """

    name: str
    answers: tuple[Answer, ...] = (page(),)
    url: str = ""
    request: Mapping[str, Any] = field(default_factory=dict)
    then: tuple[Step, ...] = ()
    files: tuple[str, ...] = ()
    by_engine: bool = False
    ours: Mapping[str, Any] = field(default_factory=dict)
    ours_watched: Mapping[str, Any] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)
    why: str = ""

    @property
    def steps(self) -> tuple[Step, ...]:
        return (Step(url=self.url or f"{{plain}}/{self.name}/", request=self.request), *self.then)


def fill(value: Any, places: Mapping[str, str]) -> Any:
    """Put the places into every text of a nested value."""
    if isinstance(value, str):
        for name, place in places.items():
            value = value.replace(f"{{{name}}}", place)
        return value
    if isinstance(value, dict):
        return {key: fill(inner, places) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(fill(inner, places) for inner in value)
    return value
