"""The measured methods: each tells exactly the new URLs, and every byte it moves is counted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.drum_cost import front_coding, tables
from benchmarks.drum_cost.counting import CountingFiles, Moved
from benchmarks.drum_cost.front_coding import FrontCodedFile
from benchmarks.drum_cost.hash_file import HashFile
from benchmarks.drum_cost.methods import METHODS
from benchmarks.drum_cost.redis_log import log_share
from benchmarks.drum_cost.replay import replayed
from benchmarks.drum_cost.scale import scaled_down
from benchmarks.drum_cost.trial import WrongVerdictsError, run_trial
from benchmarks.drum_cost.urls import TEXT_BYTES, UNIQUE_SHARE, Batch, offered

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.drum_cost.trial import Trial

COUNT = 15_000
# Mercator-B merges 36 times, PolyBot 378, the paper's DRUM seven times.
TINY = scaled_down(10_000, 8)


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trial]:
    """Every method at a tiny scale."""
    return {name: run_trial(name, COUNT, TINY, tmp_path_factory.mktemp(name)) for name in METHODS}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_tells_each_new_url_once_and_no_other(name: str, tmp_path: Path) -> None:
    """What lies in the queue's file is the set of URLs that were offered; all came through several merges."""
    method = METHODS[name].make(tmp_path, CountingFiles(), TINY)
    expected = set()
    for batch in offered(COUNT, 7_000):
        expected |= set(_urls(batch))
        method.offer(batch)
    method.finish()
    data = (tmp_path / "queue").read_bytes()
    told = [data[at : at + TEXT_BYTES] for at in range(0, len(data), TEXT_BYTES)]
    assert len(told) == method.queue.count == len(expected)
    assert set(told) == expected
    assert method.merges > 1


@pytest.mark.parametrize("name", ["mercator", "polybot", "drum"])
def test_measured_alpha_is_the_formulas(name: str, trials: dict[str, Trial]) -> None:
    """Within what the formula leaves out: a last merge that is not full, and buckets that fill unevenly."""
    assert trials[name].alpha == pytest.approx(trials[name].model, rel=0.02)


def test_each_term_of_the_formulas_is_where_it_should_be(trials: dict[str, Trial]) -> None:
    for name in ("mercator", "drum", "tiered"):
        assert trials[name].share("text") == 2.0, name
    assert trials["polybot"].share("text") == 0.0
    assert trials["drum"].share("tuples") == pytest.approx(16 / TEXT_BYTES)
    for trial in trials.values():
        assert trial.share("queue") == pytest.approx(trial.unique / trial.offered)


def test_mercator_and_polybot_bend_and_drum_does_not(trials: dict[str, Trial], tmp_path: Path) -> None:
    """Four times the URLs: the quadratic part of alpha grows with them, DRUM's stays out of sight."""
    (tmp_path / "fewer").mkdir()
    grown = {}
    for name in ("mercator", "polybot", "drum", "ours"):
        directory = tmp_path / name
        directory.mkdir()
        grown[name] = trials[name].share("set") - run_trial(name, COUNT // 4, TINY, directory).share("set")
    assert grown["mercator"] > 0.2
    assert grown["polybot"] > 1.0
    assert grown["drum"] < 0.05
    assert grown["ours"] < 0.2


def test_bigcrawls_own_is_below_the_papers_bound(trials: dict[str, Trial]) -> None:
    assert trials["ours"].alpha < trials["drum"].alpha
    assert trials["ours"].alpha < 2 + UNIQUE_SHARE + 16 / TEXT_BYTES


def test_the_replay_says_what_tiered_runs_moved(tmp_path: Path) -> None:
    """At a size at which buckets have runs of several tiers; the trailers of small runs are in it."""
    scale = scaled_down(48_000, 2)
    trial = run_trial("tiered", 200_000, scale, tmp_path)
    cost = replayed(
        trial.offered,
        trial.offered / trial.merges,
        buckets=scale.buckets,
        unique_share=trial.unique / trial.offered,
        fresh_max=scale.fresh_max,
    )
    assert trial.merges > 20
    assert cost.total == pytest.approx(trial.moved["set"].both, rel=0.1)


def test_a_wrong_verdict_is_an_error_and_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set that forgets makes URLs new again."""
    check_update = HashFile.check_update

    def forgetful(self: HashFile, keys: np.ndarray) -> np.ndarray:
        new = check_update(self, keys)
        new[:1] = True
        return new

    monkeypatch.setattr(HashFile, "check_update", forgetful)
    with pytest.raises(WrongVerdictsError, match="Mercator-B"):
        run_trial("mercator", COUNT, TINY, tmp_path)


def test_the_stream_has_the_share_of_new_urls_and_says_which_they_are() -> None:
    seen: set[bytes] = set()
    keys: dict[bytes, int] = {}
    new = 0
    for batch in offered(20_000, 3_000):
        for url, key, is_new in zip(_urls(batch), batch.keys.tolist(), batch.is_new.tolist(), strict=True):
            assert (url not in seen) == is_new
            assert keys.setdefault(url, key) == key, "a URL has one key"
            seen.add(url)
            new += is_new
    assert len(set(keys.values())) == len(keys) == new
    assert new / 20_000 == pytest.approx(UNIQUE_SHARE, rel=0.1)


def test_front_coding_gives_back_what_it_was_given(tmp_path: Path) -> None:
    """Against a set, in rounds of random URLs of any length, with splits of blocks and URLs that are prefixes."""
    dice = np.random.default_rng(5)
    file = FrontCodedFile(CountingFiles(), tmp_path / "seen")
    known: set[bytes] = set()
    for _ in range(30):
        urls = sorted(
            {b"ab"[: dice.integers(3)] * dice.integers(4) + b"%x" % int(dice.integers(3_000)) for _ in range(300)}
        )
        assert file.check_update(urls) == [url for url in urls if url not in known]
        known |= set(urls)
        assert list(file) == sorted(known)
    assert len(known) > 4 * front_coding.BLOCK_URLS


def test_counting_sees_every_byte(tmp_path: Path) -> None:
    files = CountingFiles()
    files.write_new(tmp_path / "run-1", [b"a" * 10, b"b" * 5])
    files.write_at(tmp_path / "run-2", 0, b"c" * 7)
    files.read(tmp_path / "run-1", 5)
    assert files.by_kind() == {"run": Moved(10, 22)}
    assert files.total == Moved(10, 22)


def test_a_mapped_file_counts_the_pages_that_were_touched(tmp_path: Path) -> None:
    """Two pages of a hundred, or, on a file system whose cache cannot be emptied, all of them."""
    files = CountingFiles()
    page = os.sysconf("SC_PAGE_SIZE")
    files.write_new(tmp_path / "run-1", [bytes(100 * page)])
    view = memoryview(files.map(tmp_path / "run-1"))
    assert view[3 * page] == view[70 * page] == view[70 * page + 1] == 0
    assert files.total.read == 0
    del view
    assert files.total.read in {2 * page, 100 * page}


def test_redis_log_holds_each_url_once_and_compressed() -> None:
    assert 0.01 < log_share(3_000) < 1.0


def test_tables_have_a_cell_for_every_run(trials: dict[str, Trial]) -> None:
    heads, row = tables.measured(list(trials.values()))
    assert heads == ("URLs offered", *(entry.title for entry in METHODS.values()))
    assert row[0] == "15,000"
    assert len(tables.by_part(list(trials.values()))) == 1 + len(METHODS)


def _urls(batch: Batch) -> list[bytes]:
    return [bytes(text) for text in batch.texts]
