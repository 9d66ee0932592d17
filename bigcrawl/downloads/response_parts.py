"""Computes parts of a response, and caches those whose values repeat."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from scrapy.http import Headers, HtmlResponse
from scrapy.responsetypes import responsetypes

from bigcrawl.media_types import HTML, type_of, type_told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy.http import Response


LENGTH_DIGITS_MAX: Final = 18


def response_class(headers: Headers, url: str, body: bytes) -> type[Response]:
    """Return Scrapy's class for a response, or HtmlResponse for everything that browsers show as HTML."""
    told: list[bytes] = dict.get(headers, b"Content-Type") or []
    encodings: list[bytes] = dict.get(headers, b"Content-Encoding") or []
    kind = _kind_by_type(told[0] if len(told) == 1 else b",".join(told), encodings[-1] if encodings else None)
    if kind is None and not encodings and type_of(told, body) in HTML:
        return HtmlResponse
    return responsetypes.from_args(headers=headers, url=url, body=body) if kind is None else kind


def length_in(values: Sequence[bytes]) -> int | None:
    """Return the one number in the Content-Length headers; None for anything else.

    Source: Fetch, "extract a length". Differs: contradictory values give None, where browsers fail.
    """
    if len(values) == 1 and values[0].isdigit():
        length = values[0]
    else:
        told = {value.strip(b" \t") for header in values for value in header.split(b",")}
        length = told.pop() if len(told) == 1 else b""
    return int(length) if length.isdigit() and len(length) <= LENGTH_DIGITS_MAX else None


@lru_cache(4_096)
def title_case(name: bytes) -> bytes:
    return name.title()


@lru_cache(10_000)
def parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(text.partition("%")[0])


@lru_cache(256)
def _kind_by_type(content_type: bytes, content_encoding: bytes | None) -> type[Response] | None:
    told = type_told((content_type,))
    if not told:
        return None
    named = {b"Content-Type": told.encode()}
    if content_encoding is not None:
        named[b"Content-Encoding"] = content_encoding
    kind = responsetypes.from_args(headers=Headers(named))
    return kind if issubclass(kind, responsetypes.from_mimetype("text/plain")) else None
