"""What a store that is missing, refuses or hangs does to its caller."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from fsspec.registry import _registry

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.store import objects as objects_module
from bigcrawl.store.objects import ObjectStore

if TYPE_CHECKING:
    from pathlib import Path


def test_a_missing_package_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install, the driver of the URL's kind too."""
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ConfigError, match=r"pip install 'bigcrawl\[store\]' s3fs"):
        ObjectStore("s3://bucket")
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    monkeypatch.delitem(_registry, "gs", raising=False)  # a test before may have used it
    with pytest.raises(ConfigError, match=r"pip install 'bigcrawl\[store\]' gcsfs"):
        ObjectStore("gs://bucket")


def test_an_unknown_kind_of_url_is_an_error() -> None:
    """A URL that fsspec does not know is a mistake in the settings."""
    with pytest.raises(ConfigError, match="nosuch"):
        ObjectStore("nosuch://bucket")


@pytest.mark.parametrize("url", ["bucket/path", "/mnt/store", "s3:/bucket/path", "s3://", "file://store", "file://"])
def test_what_is_no_url_is_no_directory(url: str) -> None:
    """A mistyped one would put the crawl's state below the directory in which the node was started."""
    with pytest.raises(ConfigError, match=r"BIGCRAWL_STORE_URL is .* it takes a URL such as"):
        ObjectStore(url)


def test_errors_of_the_store_may_pass(tmp_path: Path) -> None:
    """Whatever a driver raises can be tried again; nothing half-written is left."""
    (tmp_path / "store").write_text("a file where a directory should be")
    objects = ObjectStore(f"file://{tmp_path}/store")
    with pytest.raises(TransientStoreError, match="file://"):
        objects.put("a/b", b"data")


def test_a_write_that_fails_leaves_no_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is renamed when it is whole and synced; what is left of a killed write is not listed."""
    objects = ObjectStore(f"file://{tmp_path}/store")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(TransientStoreError, match="no space"):
        objects.put("a/b", b"data")
    monkeypatch.undo()
    assert objects.list("a") == {}
    (tmp_path / "store" / "a" / ".b.tmp-1-2").write_bytes(b"da")
    assert objects.list("a") == {}


def test_a_directory_that_cannot_be_read_is_no_empty_one(tmp_path: Path) -> None:
    """Who takes an error for an empty store would begin a partition anew."""
    objects = ObjectStore(f"file://{tmp_path}/store")
    assert objects.list("crawl") == {}
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "crawl").write_text("a file where a directory should be")
    with pytest.raises(TransientStoreError, match="Not a directory"):
        objects.list("crawl")


def test_writers_that_begin_a_directory_at_once_all_write(tmp_path: Path) -> None:
    """Each finds that its parent is missing, and then perhaps that another has made it."""
    for number in range(40):
        objects = ObjectStore(f"file://{tmp_path}/{number}/store")
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda name, objects=objects: objects.put(f"crawl/{name}", b"x"), "abcdef"))
        assert len(objects.list("crawl")) == 6


def test_a_store_that_hangs_is_given_up_and_its_calls_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller waits for a bounded time; calls left behind are few, and none keeps the process alive."""
    monkeypatch.setattr(objects_module, "CALLS_MAX", 2)
    (tmp_path / "store").mkdir()
    os.mkfifo(tmp_path / "store" / "hangs")  # reading it waits for a writer
    objects = ObjectStore(f"file://{tmp_path}/store", call_s=0.2)
    before = set(threading.enumerate())  # other tests leave such calls behind, too
    for _ in range(2):
        with pytest.raises(TransientStoreError, match="has not answered"):
            objects.get("hangs")
    with pytest.raises(TransientStoreError, match="does not answer 2 calls"):
        objects.get("other")
    left = [each for each in threading.enumerate() if each.name == "bigcrawl-object" and each not in before]
    assert left
    assert all(thread.daemon for thread in left)
    os.close(os.open(tmp_path / "store" / "hangs", os.O_RDWR))  # a writer for all of them, who waits for no reader
    for thread in left:
        thread.join()
    objects._call_s = 60  # a busy machine takes its time to answer
    assert objects.get("other") is None, "it answers again"


def test_closing_ends_the_wait_for_a_call(tmp_path: Path) -> None:
    """A node that ends does not wait for a store that hangs."""
    (tmp_path / "store").mkdir()
    os.mkfifo(tmp_path / "store" / "hangs")
    objects = ObjectStore(f"file://{tmp_path}/store", call_s=600)
    threading.Timer(0.1, objects.close).start()
    with pytest.raises(TransientStoreError, match="is being closed"):
        objects.get("hangs")
    with (tmp_path / "store" / "hangs").open("wb"):
        pass
