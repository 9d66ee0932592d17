"""Finds the refresh of a page: its `Refresh` header, or else its first meta refresh to another page."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl.links.encoding import Encoding, joiner_of
from bigcrawl.links.limits import IN_FORCE
from bigcrawl.markup import attributes_of, tags
from bigcrawl.url.canonical import LinkRoom
from bigcrawl.url.header import url_in
from bigcrawl.url.refresh import refresh_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.links.encoding import Page

_LOOKS: Final = 1_000  # tags; a refresh is at the beginning of a page


class FollowedRefresh(NamedTuple):
    """A refresh that leads to another URL after some seconds; `url` is canonical, or None if it cannot be crawled."""

    seconds: int
    url: str | None


def header_links(page: Page) -> list[str]:
    """Return a list of the target of a page's `Refresh` header; empty without one."""
    led = _in_header(page)
    return [led.url] if led and led.url and len(led.url) <= IN_FORCE.limits.url_bytes else []


def _in_header(page: Page) -> FollowedRefresh | None:
    value = _header(getattr(page, "headers", None))
    if not value:
        return None
    value = value if isinstance(value, bytes) else str(value).encode()
    seconds, target = refresh_in(value.decode("latin-1"))
    return FollowedRefresh(seconds, url_in([target.encode("latin-1")], page.url)) if target else None


def refresh_of(page: Page, bytes_max: int, ignored: Sequence[str] = ()) -> FollowedRefresh | None:
    """Return the refresh in a page's header; otherwise that in its first bytes outside of `ignored` elements."""
    if (led := _in_header(page)) is not None:
        return led
    encoding = Encoding(page, bytes_max)
    base_href = None
    for name, _, written in tags(_element_remover(tuple(ignored))("", encoding.text()), _LOOKS):
        attributes = attributes_of(written) if name in ("base", "meta") else {}
        if name == "base" and base_href is None:
            base_href = attributes.get("href")
        elif attributes.get("http-equiv", "").lower() == "refresh":
            seconds, target = refresh_in(attributes.get("content", ""))
            if target:
                joiner = joiner_of(page.url, base_href)
                joined = joiner.join_all([target], encoding.respell, LinkRoom()) if joiner else []
                return FollowedRefresh(seconds, joined[0] if joined else None)
    return None


def _header(headers: Any) -> Any:
    if isinstance(headers, dict):
        values = dict.get(headers, b"Refresh")
        return next(filter(None, values), None) if isinstance(values, list) else dict.get(headers, "Refresh")
    return headers.get("Refresh") if headers else None


@lru_cache(16)
def _element_remover(names: tuple[str, ...]):  # type: ignore[no-untyped-def]
    named = "|".join(map(re.escape, ("script", "style", *names)))
    ends = r"(?=[\t\n\f\r />])"
    return re.compile(
        rf"<!--(?:[^-]++|-(?!->))*+|<(?P<name>(?ai:{named})){ends}(?:[^<]++|<(?!/(?ai:(?P=name)){ends}))*+"
    ).sub
