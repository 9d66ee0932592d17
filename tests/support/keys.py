"""The keys of the tests' crawls: their hash is that of any crawl, their secret is known (`tests/conftest.py`)."""

from __future__ import annotations

from bigcrawl.url.key import Keys

SECRET = b"of tests, public"
KEYS = Keys(SECRET)

url_key = KEYS.of_url
request_key = KEYS.of_request
pld_key = KEYS.of_pld
partition_of = KEYS.partition_of
