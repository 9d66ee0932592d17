from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.drum_speed import ours, peers
from benchmarks.drum_speed.__main__ import missed_promises
from benchmarks.drum_speed.offered import Offers, keys_and_aux
from bigcrawl.url.key import PUBLIC_KEYS

if TYPE_CHECKING:
    from pathlib import Path


def test_keys_are_those_of_the_product() -> None:
    """The batch way of hashing gives the keys that `url_keys` gives, in order, for text of any script too."""
    urls = [*Offers(10_000, 1).chunk()[:2000], "http://a.example/é", "http://a.example/\u4e2d"]
    keys, aux = keys_and_aux(urls)
    assert keys.tolist() == [PUBLIC_KEYS.of_url(url) for url in urls]
    assert [text.decode() for text in aux] == urls


def test_one_url_in_nine_is_new() -> None:
    """Offers of two streams with one seed are equal, and as many are new as it says."""
    first, second = Offers(50_000, 7), Offers(50_000, 7)
    seen = set(first.first_ones(0, 50_000))
    offered = 0
    for _ in range(3):
        chunk = first.chunk()
        assert chunk == second.chunk()
        seen.update(chunk)
        offered += len(chunk)
    assert len(seen) == first.known
    assert offered == 9 * (first.known - 50_000)


def test_a_small_run_counts_its_verdicts(tmp_path: Path) -> None:
    """Filling, offering and merging end with the keys that were offered, and with figures."""
    spec = {"directory": str(tmp_path / "set"), "keys": 30_000, "urls": 100_000, "memory_bytes": 16 << 20}
    row = ours.measure(spec)
    assert row["held"] == 30_000
    assert row["keys"] == 30_000 + row["urls"] // 9
    assert row["disk_bytes"] > 5 * row["keys"]


@pytest.mark.parametrize(
    "peer", [pytest.param("Scrapy RFPDupeFilter", marks=pytest.mark.long("another peer")), "SQLite"]
)
def test_a_peer_answers_the_same_offers(tmp_path: Path, peer: str) -> None:
    """A peer that miscounted would end the benchmark; its figures are of the sets it was filled with."""
    row = peers.measure({"peer": peer, "directory": str(tmp_path), "keys": 20_000, "urls": 5_000})
    assert (row["held"], row["keys"]) == (20_000, 20_000 + row["urls"] // 9)
    assert row["disk_bytes"] > 8 * row["keys"]


def test_a_promise_that_is_not_kept_is_said() -> None:
    """Too slow, slower than the smallest set, too much memory: a line each."""
    rows = [
        {"held": 10, "urls": 2_000_000, "wall_s": 1.0, "rss_bytes": 1e8},
        {"held": 100, "urls": 1_700_000, "wall_s": 1.0, "rss_bytes": 3e8},
        {"held": 1000, "urls": 900_000, "wall_s": 1.0, "rss_bytes": 1e8},
    ]
    assert missed_promises(rows[:1]) == []
    assert missed_promises(rows) == [
        "100 keys: 300 MB, not 256",
        "1,000 keys: 900,000 URLs/s, not 1,000,000",
        "1,000 keys: 45% of the rate at 10",
    ]
