"""Keys: secret where the crawl has a secret, and for ever the same."""

from __future__ import annotations

import struct
import subprocess
import sys

import pytest

from bigcrawl.url.key import HASH_SEED, PUBLIC_KEYS, SECRET_BYTES, Keys
from tests.support.imports import annex_sources, package_sources
from tests.support.keys import KEYS, partition_of, pld_key, request_key, url_key

URL = "http://example.com/"
_64 = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def test_keys_stay_what_they_are() -> None:
    """Keys on disk were made by these functions, so their values may never change."""
    assert PUBLIC_KEYS.of_url(URL) == 0xB1E83334AE87297A
    assert PUBLIC_KEYS.of_request(URL, "POST", b"a=1") == 0x3124ECC85C81546D
    assert PUBLIC_KEYS.partition_of("example.com", 256) == 146
    keys = Keys(bytes(range(SECRET_BYTES)))
    assert keys.of_url(URL) == 0x25BBAA61B7C4CA80
    assert keys.of_request(URL, "POST", b"a=1") == 0xA7C2B7DC57315002
    assert keys.partition_of("example.com", 256) == 112


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _64


def _divided(value: int, by: int) -> int:
    return value * pow(by, -1, 1 << 64) & _64


def _unmixed(value: int) -> int:
    """MurmurHash3's last mixing, backwards."""
    value ^= value >> 33
    value = _divided(value, 0xC4CEB9FE1A85EC53)
    value ^= value >> 33
    value = _divided(value, 0xFF51AFD7ED558CCD)
    return value ^ value >> 33


def forged_block(prefix: bytes, key: int) -> bytes:
    """The 16 bytes behind a prefix of as many that give it a key under MurmurHash3 with the constant seed."""
    h1 = h2 = HASH_SEED
    k1, k2 = struct.unpack("<QQ", prefix)
    h1 = (_rotated(h1 ^ _rotated(k1 * _C1 & _64, 31) * _C2 & _64, 27) + h2) * 5 + 0x52DCE729 & _64
    h2 = (_rotated(h2 ^ _rotated(k2 * _C2 & _64, 33) * _C1 & _64, 31) + h1) * 5 + 0x38495AB5 & _64
    last = _unmixed(key)  # of the first half, before the last mixing; the second one's is 0, which mixes to 0
    wanted2 = -last & _64
    wanted1 = last - wanted2 & _64
    wanted1, wanted2 = wanted1 ^ 32, wanted2 ^ 32  # the length of both blocks
    k1 = _rotated(_divided(wanted1 - 0x52DCE729 & _64, 5) - h2 & _64, 64 - 27) ^ h1
    k2 = _rotated(_divided(wanted2 - 0x38495AB5 & _64, 5) - wanted1 & _64, 64 - 31) ^ h2
    k1 = _divided(_rotated(_divided(k1, _C2), 64 - 31), _C1)
    k2 = _divided(_rotated(_divided(k2, _C1), 64 - 33), _C2)
    return struct.pack("<QQ", k1, k2)


def test_nobody_can_make_a_request_with_the_key_of_anothers_url() -> None:
    """With the constant seed the last 16 bytes of a request can be solved for; with a crawl's secret they cannot."""
    victim, evil, form = "http://victim.example/important", "http://e/", b"?"
    body = form + forged_block(f"POST {evil}\n".encode() + form, PUBLIC_KEYS.of_url(victim))
    assert PUBLIC_KEYS.of_request(evil, "POST", body) == PUBLIC_KEYS.of_url(victim)
    assert KEYS.of_request(evil, "POST", body) != KEYS.of_url(victim)


def test_crawls_have_keys_of_their_own() -> None:
    """What is found out of one crawl's keys says nothing of another's."""
    other = Keys(b"another's secret"[:SECRET_BYTES])
    assert len({keys.of_url(URL) for keys in (KEYS, other, PUBLIC_KEYS)}) == 3
    assert len({keys.of_pld("example.com") for keys in (KEYS, other, PUBLIC_KEYS)}) == 3


def test_keys_show_whether_they_are_secret_and_never_the_secret() -> None:
    """Tracebacks and logs may show the object."""
    assert (repr(PUBLIC_KEYS), repr(KEYS)) == ("<Keys public>", "<Keys secret>")


def test_only_the_crawl_record_makes_keys_without_a_secret() -> None:
    """The rest of the package asks its crawl for keys: `PUBLIC_KEYS` is for crawls that have no secret.

    A spider that writes keys into its items uses them too: they must be those of every run.
    """
    allowed = {
        "url/key.py",
        "scheduler/budgets/allowances.py",
        "scheduler/rules/blacklist.py",
        "scheduler/partition/fold/pld_records.py",
        "scheduler/dupefilter.py",
        "scheduler/crawl/node_resources.py",
        "bigcrawl_forms/spider.py",
        "bigcrawl_sampling/coverage.py",
        "bigcrawl_sampling/steps.py",
        "bigcrawl_sampling/walking.py",
    }
    sources = package_sources() | annex_sources()
    found = {path for path, source in sources.items() if "PUBLIC_KEYS" in source}
    assert found == allowed


@pytest.mark.parametrize("seed", ["random", "0"])
def test_marks_tell_urls_apart_and_are_no_secret_only_where_keys_take_their_place(seed: str) -> None:
    """A process hashes text with a key of its own; one told not to has the crawl's keys for marks."""
    program = (
        "from bigcrawl.url.key import Keys; k = Keys(b'k' * 16); urls = ['http://a/', 'http://b/'];"
        "marks = k.marks_of(urls).tolist(); assert marks == [k.mark_of(u) for u in urls] and len(set(marks)) == 2;"
        "assert [mark % (1 << 64) for mark in k.signed_marks_of(urls)] == marks;"
        "print(marks == [k.of_url(u) for u in urls])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(seed == "0")


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


@pytest.mark.parametrize("keys", [KEYS, PUBLIC_KEYS])
def test_many_keys_are_the_keys_of_each(keys: Keys) -> None:
    """A batch is hashed as its URLs are one by one: unsigned, in order, one for each URL, none for none."""
    urls = [f"http://h{i}.example/page-{i}.html" for i in range(200)] + ["http://xn--bcher-kva.example/\u00fc"]
    found = keys.of_urls(urls).tolist()
    assert found == [keys.of_url(url) for url in urls]
    assert any(key >= 1 << 63 for key in found)
    assert len(keys.of_urls([])) == 0


def test_partition_is_that_of_the_domains_key() -> None:
    """Whoever has a PLD's key, as edges have, knows its partition."""
    for pld in ("example.com", "example.co.uk", "127.0.0.1"):
        assert partition_of(pld, 7) == pld_key(pld) % 7


def test_marks_are_the_same_one_by_one_and_64_bits_without_a_sign() -> None:
    """Python's hashes are negative for half of all texts."""
    urls = [f"http://a.example/{number}" for number in range(64)]
    marks = [PUBLIC_KEYS.mark_of(url) for url in urls]
    assert marks == PUBLIC_KEYS.marks_of(urls).tolist()
    signed = PUBLIC_KEYS.signed_marks_of(urls)
    assert [mark % (1 << 64) for mark in signed] == marks
    assert max(signed) < 1 << 63
    assert max(marks) >= 1 << 63 > min(marks) >= 0
    assert len(set(marks)) == len(urls)
