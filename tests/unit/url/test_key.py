from __future__ import annotations

import pytest

from bigcrawl.url.key import partition_of, pld_key, request_key, url_key, url_key_array, url_keys

URL = "http://example.com/"


def test_keys_stay_what_they_are() -> None:
    """Keys on disk were made by these functions, so their values may never change."""
    assert url_key(URL) == 0xB1E83334AE87297A
    assert request_key(URL, "POST", b"a=1") == 0x3124ECC85C81546D
    assert partition_of("example.com", 256) == 146


def test_a_get_without_body_has_its_urls_key() -> None:
    """However the method is spelled, a plain GET is its URL."""
    assert request_key(URL) == request_key(URL, "get", b"") == url_key(URL)


@pytest.mark.parametrize(
    ("method", "body"),
    [("POST", b""), ("HEAD", b""), ("GET", b"x"), ("POST", b"x"), ("POST", b"y"), ("PUT", b"x")],
)
def test_method_and_body_make_other_requests(method: str, body: bytes) -> None:
    """Requests that differ in method or body have keys of their own."""
    others = {request_key(URL), request_key(URL, "DELETE"), request_key(URL + "x", method, body)}
    assert request_key(URL, method, body) not in others
    assert request_key(URL, method.lower(), body) == request_key(URL, method, body)


def test_keys_are_unsigned_64_bits_and_do_not_collide_in_a_small_crawl() -> None:
    """A hundred thousand URLs have as many keys, spread over both halves of the range."""
    keys = {url_key(f"http://example.com/{number}") for number in range(100_000)}
    assert len(keys) == 100_000
    assert min(keys) >= 0
    assert 2**63 < max(keys) < 2**64


def test_plds_spread_evenly_over_partitions() -> None:
    """Each of 16 partitions gets its share of 16,000 PLDs, give or take a fifth."""
    counts = [0] * 16
    for number in range(16_000):
        counts[partition_of(f"site{number}.example", 16)] += 1
    assert all(800 < count < 1_200 for count in counts)


def test_many_keys_are_the_keys_of_each() -> None:
    """A batch is hashed as its URLs are one by one: unsigned, with the crawl's seed, in order."""
    urls = [f"http://h{i}.example/page-{i}.html" for i in range(200)]
    keys = url_keys(urls)
    assert keys == [url_key(url) for url in urls]
    assert all(0 <= key < 1 << 64 for key in keys)
    assert any(key >= 1 << 63 for key in keys)


def test_keys_in_an_array_are_the_same() -> None:
    """For DRUM: unsigned, in order, one for each URL, none for none."""
    urls = [f"http://www.example.com/{i}" for i in range(100)] + ["http://xn--bcher-kva.example/\u00fc"]
    assert url_key_array(urls).tolist() == url_keys(urls)
    assert len(url_key_array([])) == 0


def test_partition_is_that_of_the_domains_key() -> None:
    """Whoever has a PLD's key, as edges have, knows its partition."""
    for pld in ("example.com", "example.co.uk", "127.0.0.1"):
        assert partition_of(pld, 7) == pld_key(pld) % 7
