"""Fingerprints are those that Scrapy and scrapy-redis make."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.utils.request import fingerprint
from scrapy_redis.dupefilter import RFPDupeFilter
from w3lib.url import canonicalize_url

from bigcrawl.url.scrapy_fingerprint import fingerprint_of

URLS = st.builds(
    "http://a.example{}{}".format, st.sampled_from(["", ":80", ":8000"]), st.text(max_size=30).map("/{}".format)
)


def prefix_of(hexadecimal: str) -> int:
    return int(hexadecimal[:16], 16)


@given(URLS, st.sampled_from(["GET", "POST"]), st.binary(max_size=20))
def test_prefix_is_that_of_the_others_fingerprint(url: str, method: str, body: bytes) -> None:
    """Of whatever request."""
    request = Request(url, method=method, body=body)
    theirs = RFPDupeFilter(None, "key").request_fingerprint(request)
    assert fingerprint_of("scrapy-redis", request.url, method, body) == prefix_of(theirs)
    assert fingerprint_of("scrapy", request.url, method, body) == prefix_of(fingerprint(request).hex())


@pytest.mark.parametrize("url", ["http://a.example/?b=1&a=2#f", "http://a.example"])
def test_early_scrapy_hashed_three_texts(url: str) -> None:
    """Method, canonical URL and body, one after the other."""
    wanted = hashlib.sha1(b"GET" + canonicalize_url(url).encode() + b"x", usedforsecurity=False).hexdigest()
    assert fingerprint_of("scrapy-2.6", url, "GET", b"x") == prefix_of(wanted)
