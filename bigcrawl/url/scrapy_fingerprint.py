"""Fingerprints by which Scrapy and scrapy-redis know requests: SHA-1 of a canonical form that is not ours.

They cannot be turned into our keys. So whether another crawler has met a URL is found out by making its fingerprint.
Only their first eight bytes are kept, as a number.
"""

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
    """As scrapy-redis' dupefilter from 0.8 on."""
    return json.dumps({"method": method, "url": url, "body": body.hex()}, sort_keys=True).encode()


def _of_scrapy(url: str, method: str, body: bytes) -> bytes:
    """As Scrapy's RequestFingerprinter from 2.7 on, without headers."""
    return json.dumps({"method": method, "url": url, "body": body.hex(), "headers": {}}, sort_keys=True).encode()


def _of_early_scrapy(url: str, method: str, body: bytes) -> bytes:
    """As Scrapy before 2.7, and scrapy-redis before 0.8, which used Scrapy's."""
    return method.encode() + url.encode() + body


SCHEMES: Final[dict[str, Callable[[str, str, bytes], bytes]]] = {
    SCRAPY_REDIS: _of_scrapy_redis,
    SCRAPY: _of_scrapy,
    "scrapy-2.6": _of_early_scrapy,
}
"""The ways to make a fingerprint, by name."""


def fingerprint_of(scheme: str, url: str, method: str = "GET", body: bytes = b"") -> int:
    """Return the first eight bytes of a request's fingerprint, as a number.

    Raises:
        ValueError: the URL has no canonical form by w3lib.

    Cost: 30 us.
    """
    text = SCHEMES[scheme](canonicalize_url(url), method, body)
    return int.from_bytes(hashlib.sha1(text, usedforsecurity=False).digest()[:PREFIX_BYTES], "big")
