"""Whole files in a store: there with all their bytes, or not; over a directory, S3's protocol and Google's."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.store import whole_files
from bigcrawl.store.whole_files import StoredFiles
from tests.support.servers.gs_server import new_gs_bucket
from tests.support.servers.s3_server import new_bucket

if TYPE_CHECKING:
    from pathlib import Path

# gcsfs passes aiohttp the bytes of an object of a megabyte, in a loop of its own.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")

PART = 5 << 20  # S3 takes no smaller one, but for the last
SIZES = (0, 1, 100_000, PART, 2 * PART - 1, 2 * PART, 2 * PART + 1, 3 * PART + 12_345)
NAME = "c-20261125220500123-00000-n.warc.gz"


@pytest.fixture(params=["file", "s3", "gs"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredFiles:
    monkeypatch.setattr(whole_files, "PART_BYTES", PART)
    for options in whole_files._PUT_OPTIONS.values():
        monkeypatch.setitem(options, "chunksize", PART)
    if request.param == "s3":
        return StoredFiles(f"{new_bucket(request.getfixturevalue('s3_endpoint'), monkeypatch)}/pages/", "S")
    if request.param == "gs":
        return StoredFiles(f"{new_gs_bucket(request.getfixturevalue('gs_endpoint'), monkeypatch)}/pages", "S")
    (tmp_path / "store").mkdir()
    return StoredFiles(f"file://{tmp_path}/store", "S")


def local(directory: Path, size: int, seed: int = 0) -> Path:
    path = directory / f"local-{size}-{seed}"
    path.write_bytes(random.Random(seed).randbytes(size))
    return path


def test_a_file_is_held_when_all_its_bytes_are(store: StoredFiles, tmp_path: Path) -> None:
    """Of every number of parts; a file of the same size with one other byte is not it."""
    for size in SIZES:
        path, name = local(tmp_path, size), f"{size}-{NAME}"
        assert store.holds(name, path) is None
        store.put(name, path)
        assert store.holds(name, path) is True
        if size:
            data = bytearray(path.read_bytes())
            data[-1] ^= 1
            (tmp_path / "other").write_bytes(data)
            assert store.holds(name, tmp_path / "other") is False
            (tmp_path / "shorter").write_bytes(data[:-1])
            assert store.holds(name, tmp_path / "shorter") is False


def test_a_file_is_written_over_and_removed(store: StoredFiles, tmp_path: Path) -> None:
    """Indexes are, when they were made anew; what is not there is removed without an error."""
    first, second = local(tmp_path, 1000, 1), local(tmp_path, 1000, 2)
    store.put(NAME, first)
    store.put(NAME, second)
    assert store.holds(NAME, first) is False
    assert store.holds(NAME, second) is True
    for _ in range(2):
        store.remove(NAME)
        assert store.holds(NAME, second) is None


def test_a_store_that_tells_no_checksum_is_read_back(
    store: StoredFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ETag of encrypted files, for instance, says nothing of the bytes."""
    path, other = local(tmp_path, 2 * PART + 5, 1), local(tmp_path, 2 * PART + 5, 2)
    store.put(NAME, path)
    tell = store._file_info
    monkeypatch.setattr(store, "_file_info", lambda name: {**(tell(name) or {}), "ETag": '"opaque"', "md5Hash": None})
    moved = []
    monkeypatch.setattr(store, "record_progress", lambda: moved.append(1))
    assert store.holds(NAME, path) is True
    assert store.holds(NAME, other) is False
    assert len(moved) > 1, "the watchdog hears of each part"


def test_a_store_of_another_kind_is_refused() -> None:
    """Its files may be seen before they are whole."""
    with pytest.raises(ConfigError, match="S is memory://x; it takes s3://"):
        StoredFiles("memory://x", "S")
