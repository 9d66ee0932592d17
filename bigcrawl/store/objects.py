"""Reads and writes whole objects by name below one URL, through fsspec. An object becomes visible whole or not at all.

The URL may come to name another store, such as an unmounted directory. So the store has a mark, without which nothing
is written or counts as missing. A store may hang without an error, so each call runs in a thread of its own, and the
caller waits for a bounded time. An abandoned call may still be carried out later, so a name must never be used for two
contents.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.private_files import make_private_directory
from bigcrawl.store.local_files import TEMPORARY, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DRIVERS: Final = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs"}


def open_file_system(url: str, setting: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it, without making any request."""
    scheme, separator, path = url.partition("://")
    if not separator or not path.strip("/") or (scheme == "file" and not path.startswith(("/", "~"))):
        # fsspec would use it as a relative directory.
        raise ConfigError(
            f"{setting} is {url}; it takes a URL such as s3://bucket/path, gs://bucket/path or file:///directory"
        )
    driver = DRIVERS.get(scheme, "")
    try:
        from fsspec.core import url_to_fs  # an extra

        fs, root = url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        also = f" {driver}" if driver else ""
        raise ConfigError(f"{setting} is {url}: pip install 'bigcrawl[store]'{also} ({error})") from None
    except ValueError as error:
        raise ConfigError(f"{setting} is {url}: {error}; give a URL such as s3://bucket/path") from None
    return fs, str(root).rstrip("/")


T = TypeVar("T")

CALL_S = 30.0
CALLS_MAX = 64  # in progress, including abandoned ones


class ObjectStore:
    """The objects below a URL. Methods block; after a TransientStoreError, a write may still happen."""

    def __init__(self, url: str, *, call_s: float = CALL_S) -> None:
        self.url = url
        self._fs, self._root = open_file_system(url, "BIGCRAWL_STORE_URL")
        self._is_local = isinstance(self._fs.protocol, tuple) and "file" in self._fs.protocol
        self._call_s = call_s
        self._mark = ""
        self._closing: Future[None] = Future()
        self._under_way = 0
        self._lock = threading.Lock()

    def require_mark(self, mark: str) -> None:
        self._mark = mark

    def put(self, name: str, data: bytes) -> None:
        """Write an object durably. May be repeated with the same data."""
        self._call_in_thread(lambda: self._write_object(f"{self._root}/{name}", data))

    def get(self, name: str) -> bytes | None:
        return self._call_in_thread(lambda: self._read_object(f"{self._root}/{name}"))

    def has(self, name: str) -> bool:
        return self._call_in_thread(lambda: self._exists(f"{self._root}/{name}"))

    def list(self, prefix: str) -> dict[str, int]:
        return self._call_in_thread(lambda: self._list_objects(f"{self._root}/{prefix}"))

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._call_in_thread(lambda path=f"{self._root}/{name}": self._remove_object(path))  # type: ignore[misc]

    def close(self) -> None:
        if not self._closing.done():
            self._closing.set_result(None)

    def _write_object(self, path: str, data: bytes) -> None:
        if self._is_local:
            self._require_marked_store()  # before directories are made
            _write_local(Path(path), data)
        else:
            self._fs.pipe_file(path, data)
        self._require_marked_store()

    def _read_object(self, path: str) -> bytes | None:
        try:
            return bytes(self._fs.cat_file(path))
        except FileNotFoundError:
            self._require_marked_store()
            return None

    def _exists(self, path: str) -> bool:
        if not (is_there := self._is_there(path)):
            self._require_marked_store()
        return is_there

    def _is_there(self, path: str) -> bool:
        self._fs.invalidate_cache()
        try:
            self._fs.info(path)
        except FileNotFoundError:
            return False
        return True

    def _require_marked_store(self) -> None:
        if self._mark and not self._is_there(f"{self._root}/{self._mark}"):
            raise TransientStoreError(
                f"{self.url} is not the store in which the crawl was begun, which has {self._mark}, or it is not "
                f"mounted: mount it, or bring it back; then the crawl continues by itself"
            )

    def _list_objects(self, path: str) -> dict[str, int]:
        found = _sizes_below(self._root, path) if self._is_local else self._find_remote(path)
        self._require_marked_store()
        return found

    def _find_remote(self, path: str) -> dict[str, int]:
        self._fs.invalidate_cache()
        try:
            found = self._fs.find(path, detail=True)
        except FileNotFoundError:
            return {}
        start = len(self._root) + 1
        names = {str(name)[start:]: int(info["size"]) for name, info in found.items()}
        return {name: size for name, size in names.items() if TEMPORARY not in name}

    def _remove_object(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm_file(path)

    def _call_in_thread(self, work: Callable[[], T]) -> T:
        with self._lock:
            if self._under_way >= CALLS_MAX:
                raise TransientStoreError(f"the store {self.url} does not answer {self._under_way} calls")
            self._under_way += 1
        answer: Future[T] = Future()
        # A daemon: the process can end while its store hangs.
        threading.Thread(target=self._do_work, args=(answer, work), name="bigcrawl-object", daemon=True).start()
        either: tuple[Future[Any], ...] = (answer, self._closing)
        wait(either, self._call_s, return_when=FIRST_COMPLETED)
        if not answer.done():
            reason = "is being closed" if self._closing.done() else f"has not answered for {self._call_s:g} s"
            raise TransientStoreError(f"the store {self.url} {reason}")
        return answer.result()

    def _translate_errors(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except TransientStoreError:
            raise
        except Exception as error:  # drivers have their own errors
            raise TransientStoreError(f"the store {self.url} failed: {error!r}") from error

    def _do_work(self, answer: Future[T], work: Callable[[], T]) -> None:
        try:
            answer.set_result(self._translate_errors(work))
        except TransientStoreError as error:
            answer.set_exception(error)
        finally:
            with self._lock:
                self._under_way -= 1


def _sizes_below(root: str, path: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for directory, _, names in os.walk(path, onerror=_refuse_unless_missing):
        for name in names:
            file = Path(directory, name)
            with suppress(FileNotFoundError):  # deleted or renamed meanwhile
                if TEMPORARY not in name:
                    sizes[file.relative_to(root).as_posix()] = file.stat().st_size
    return sizes


def _refuse_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _write_local(path: Path, data: bytes) -> None:
    make_private_directory(path.parent)
    write_whole(path, (data,))
