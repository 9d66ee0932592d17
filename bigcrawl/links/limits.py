"""Limits on reading a page's links, and counts of the links dropped for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bigcrawl.url.canonical import URL_MAX_BYTES


@dataclass(frozen=True, slots=True)
class PageLimits:
    """How much of a page is read for its links. Links beyond a limit are dropped and counted."""

    page_bytes: int = 4 << 20
    links: int = 20_000
    link_bytes: int = 2 << 20
    url_bytes: int = URL_MAX_BYTES


class LeftOut(NamedTuple):
    """A page's dropped links: how many were too long, and the `limit` that the number of links reached, if any."""

    too_long: int = 0
    is_cut: bool = False
    has_more_links: bool = False
    has_longer_links: bool = False
    limit: str = ""


NOTHING_LEFT_OUT = LeftOut()


class _InForce:
    __slots__ = ("limits",)

    def __init__(self) -> None:
        self.limits = PageLimits()


IN_FORCE = _InForce()


def set_page_limits(limits: PageLimits) -> None:
    IN_FORCE.limits = limits
