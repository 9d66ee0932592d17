"""The contract of a store, over a directory and over servers of the S3 protocol and of Google Cloud Storage's."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import CorruptionError, TransientStoreError
from bigcrawl.store import series as series_module
from bigcrawl.store.objects import ObjectStore
from bigcrawl.store.series import PointSeries
from tests.support.servers.gs_server import new_gs_bucket
from tests.support.servers.s3_server import new_bucket

if TYPE_CHECKING:
    from pathlib import Path


# gcsfs passes aiohttp the bytes of an object of a megabyte, in a loop of its own.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")


@pytest.fixture(params=["file", "s3", "gs"])
def objects(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    if request.param == "s3":
        return ObjectStore(new_bucket(request.getfixturevalue("s3_endpoint"), monkeypatch))
    if request.param == "gs":
        return ObjectStore(new_gs_bucket(request.getfixturevalue("gs_endpoint"), monkeypatch))
    return ObjectStore(f"file://{tmp_path}/store")


class Files:
    """Files that only grow, and what a fetch brings back."""

    def __init__(self) -> None:
        self.bytes: dict[str, bytes] = {}
        self.fetched: dict[str, bytearray] = {}

    def read(self, name: str, offset: int, size: int) -> bytes:
        return self.bytes[name][offset : offset + size]

    def write(self, name: str, offset: int, data: bytes) -> None:
        file = self.fetched.setdefault(name, bytearray())
        file.extend(bytes(max(0, offset + len(data) - len(file))))
        file[offset : offset + len(data)] = data

    def put(self, series: PointSeries, epoch: int, number: int) -> None:
        lengths = {name: len(data) for name, data in self.bytes.items()}
        series.put(epoch, number, b"state %d" % number, lengths, self.read)


def fetched(objects: ObjectStore) -> tuple[tuple[int, int] | None, bytes, dict[str, bytes]]:
    """What a new owner gets: the place of the point, its state and its files."""
    series, files = PointSeries(objects, "crawl/p0001"), Files()
    place = series.find_newest()
    state = series.fetch(files.write) if place else b""
    return place, state, {name: bytes(data) for name, data in files.fetched.items()}


def test_objects_are_whole_listed_with_sizes_and_deleted(objects: ObjectStore) -> None:
    """A missing object is None, no error; deleting it again changes nothing."""
    assert objects.get("a/b") is None
    assert objects.list("a") == {}
    objects.put("a/b", b"one")
    objects.put("a/b", b"other")
    objects.put("a/c/d@0-4", b"")
    objects.put("ab/e", b"not below a/")
    assert objects.get("a/b") == b"other"
    assert objects.list("a") == {"a/b": 5, "a/c/d@0-4": 0}
    objects.delete(["a/b", "a/b", "a/none"])
    assert objects.list("a") == {"a/c/d@0-4": 0}


def test_each_point_brings_back_what_the_files_held(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of all sizes grow, come and go over several epochs; each point is the files of its moment."""
    monkeypatch.setattr(series_module, "SMALL_BYTES", 400)
    monkeypatch.setattr(series_module, "PIECE_BYTES_MAX", 1_000)
    choice = random.Random(5)
    files = Files()
    series = PointSeries(objects, "crawl/p0001")
    assert fetched(objects) == (None, b"", {})
    for number in range(1, 25):
        if number % 8 == 0:
            series = PointSeries(objects, "crawl/p0001")  # the next owner
            assert series.last_epoch() == number // 8
            series.find_newest()
        if choice.random() < 0.3:
            files.bytes[f"run-{number}"] = choice.randbytes(choice.randrange(3_000))
        for name in list(files.bytes):
            if choice.random() < 0.1:
                del files.bytes[name]
            elif choice.random() < 0.5:
                files.bytes[name] += choice.randbytes(choice.randrange(300))
        files.put(series, 1 + number // 8, number)
        assert fetched(objects) == ((1 + number // 8, number), b"state %d" % number, files.bytes)
        series.clear()
    point = series._newest
    assert point is not None
    assert len(objects.list("crawl/p0001")) <= 2 * len(point.objects) + 2, "nothing else is left"


def test_a_point_writes_only_what_is_new(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand appends to a file make few pieces of it, and few bytes more than the file has."""
    files, series, written = Files(), PointSeries(objects, "crawl/p0001"), 0
    put = objects.put

    def counted(name: str, data: bytes) -> None:
        nonlocal written
        written += len(data)
        put(name, data)

    monkeypatch.setattr(objects, "put", counted)
    files.bytes = {"run-1": random.Random(1).randbytes(1 << 20), "queue-0-0-0": b""}
    for number in range(40):
        files.bytes["queue-0-0-0"] += b"x" * 1_000
        files.put(series, 1, number)
    point = series._newest
    assert point is not None
    assert len(point.files["queue-0-0-0"]) <= 8
    assert written < (1 << 20) + 40_000 * 8
    assert fetched(objects)[2] == files.bytes


def test_a_damaged_point_is_passed_over_for_the_one_before(objects: ObjectStore) -> None:
    """A crc32 protects every byte; with both points damaged, nothing is fetched."""
    files, series = Files(), PointSeries(objects, "crawl/p0001")
    files.bytes = {"run-1": b"abc"}
    files.put(series, 1, 1)
    files.bytes = {"run-1": b"abcdef"}
    files.put(series, 1, 2)
    first, second = sorted(objects.list("crawl/p0001"))
    whole = objects.get(second)
    assert whole is not None
    for at in (0, 12, 25, len(whole) - 7):
        objects.put(second, whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert fetched(objects)[:2] == ((1, 1), b"state 1")
    objects.put(second, whole[:-1] + b"x")
    with pytest.raises(CorruptionError, match="crc32"):
        fetched(objects)
    objects.delete([second])
    assert fetched(objects)[2] == {"run-1": b"abc"}
    objects.put(first, b"")
    with pytest.raises(CorruptionError):
        fetched(objects)


MARK, OTHER_MARK = "crawl/store-1", "crawl/store-2"


def become(store: ObjectStore, held: dict[str, bytes]) -> None:
    """Let a store hold these objects and no others."""
    store.delete(store.list("crawl").keys() - held.keys())
    for name, data in held.items():
        store.put(name, data)


def held_by(store: ObjectStore) -> dict[str, bytes]:
    return {name: store.get(name) or b"" for name in store.list("crawl")}


@pytest.mark.parametrize("change", ["mark gone", "another mark", "empty"])
def test_a_store_that_becomes_another_one_has_and_lacks_nothing(objects: ObjectStore, change: str) -> None:
    """No point counts there and nothing is taken for missing; once it is the right one again, all goes on."""
    behind = ObjectStore(objects.url)
    objects.put(MARK, b"")
    objects.require_mark(MARK)
    files, series = Files(), PointSeries(objects, "crawl/p0001")
    files.bytes = {"run-1": b"abc"}
    files.put(series, 1, 1)
    right = held_by(behind)
    wrong = {name: data for name, data in right.items() if name != MARK and change != "empty"}
    become(behind, wrong | ({OTHER_MARK: b""} if change == "another mark" else {}))
    for ask in (
        lambda: files.put(series, 1, 2),
        lambda: objects.put("crawl/a", b""),
        lambda: objects.get("crawl/none"),
        lambda: objects.has("crawl/none"),
        lambda: objects.list("crawl"),
        lambda: PointSeries(objects, "crawl/p0001").find_newest(),
    ):
        with pytest.raises(TransientStoreError, match=f"is not the store in which the crawl was begun.*{MARK}"):
            ask()
    become(behind, right)
    assert fetched(objects) == ((1, 1), b"state 1", {"run-1": b"abc"})
    files.bytes["run-1"] += b"def"
    files.put(series, 1, 3)
    assert fetched(objects) == ((1, 3), b"state 3", {"run-1": b"abcdef"})


def test_a_store_that_goes_back_gets_all_again(objects: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mark is there, the last point is not: the next one does not count, and the one after it is whole."""
    monkeypatch.setattr(series_module, "SMALL_BYTES", 4)  # each piece is an object
    objects.put(MARK, b"")
    objects.require_mark(MARK)
    files, series = Files(), PointSeries(objects, "crawl/p0001")
    files.bytes = {"run-1": b"abcdefgh"}
    files.put(series, 1, 1)
    old = held_by(objects)
    files.bytes["run-1"] += b"ijklmnop"
    files.put(series, 1, 2)
    become(objects, old)
    files.bytes["run-1"] += b"qrstuvwx"
    with pytest.raises(TransientStoreError, match=r"has lost .*\.point, as if it were an older copy"):
        files.put(series, 1, 3)
    files.put(series, 1, 4)
    assert fetched(objects) == ((1, 4), b"state 4", files.bytes)
