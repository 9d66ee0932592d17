"""Fingerprints of requests as Scrapy and scrapy-redis make them, which cannot be converted to our keys."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

from w3lib.url import canonicalize_url

if TYPE_CHECKING:
    from collections.abc import Callable

PREFIX_BYTES: Final = 8
SCRAPY: Final = "scrapy"
SCRAPY_REDIS: Final = "scrapy-redis"


def _of_scrapy_redis(url: str, method: str, body: bytes) -> bytes:
    return json.dumps({"method": method, "url": url, "body": body.hex()}, sort_keys=True).encode()


def _of_scrapy(url: str, method: str, body: bytes) -> bytes:
    """Return the hashed bytes of Scrapy 2.7 and later, without headers."""
    return json.dumps({"method": method, "url": url, "body": body.hex(), "headers": {}}, sort_keys=True).encode()


def _of_early_scrapy(url: str, method: str, body: bytes) -> bytes:
    """Return the hashed bytes of Scrapy before 2.7, and scrapy-redis before 0.8."""
    return method.encode() + url.encode() + body


SCHEMES: Final[dict[str, Callable[[str, str, bytes], bytes]]] = {
    SCRAPY_REDIS: _of_scrapy_redis,
    SCRAPY: _of_scrapy,
    "scrapy-2.6": _of_early_scrapy,
}


def fingerprint_of(scheme: str, url: str, method: str = "GET", body: bytes = b"") -> int:
    """Return the first eight bytes of a request's fingerprint; ValueError if w3lib cannot canonicalize the URL."""
    text = SCHEMES[scheme](canonicalize_url(url), method, body)
    return int.from_bytes(hashlib.sha1(text, usedforsecurity=False).digest()[:PREFIX_BYTES], "big")
