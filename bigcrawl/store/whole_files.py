"""Writes whole files, perhaps larger than memory, below one URL. A file becomes visible whole or not at all.

A file in the store is compared with a local one by S3's ETag, if that is the MD5 of the file or of its parts' MD5s, by
Google's MD5, or by reading it back. Calls block as long as the store does, so make them in a process that may be
killed.
"""

from __future__ import annotations

import base64
import hashlib
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.store.local_files import TEMPORARY, write_whole
from bigcrawl.store.objects import open_file_system

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PART_BYTES: Final = 8 << 20
"""Bytes of one request; S3 accepts 10,000 requests per file."""

_KINDS: Final = ("s3", "gs", "file")  # files become visible at once
_PUT_OPTIONS: Final[dict[str, dict[str, object]]] = {
    "s3": {"chunksize": PART_BYTES, "max_concurrency": 1},
    "gs": {"chunksize": PART_BYTES},
}


class StoredFiles:
    def __init__(self, url: str, setting: str, record_progress: Callable[[], object] | None = None) -> None:
        self.url = url
        self._fs, self._root = open_file_system(url, setting)
        self._kind = _kind_of(self._fs, url, setting)
        self._mark = ""
        self.record_progress = record_progress or _ignore_progress

    @property
    def may_be_unmounted(self) -> bool:
        return self._kind == "file"

    def put_mark(self, name: str) -> None:
        with self._translating_errors(name):
            self._require_directory()
            write_whole(Path(self._root, name), ())

    def require_mark(self, mark: str) -> None:
        self._mark = mark
        self.check_mark()

    def check_mark(self) -> None:
        if self._mark and not Path(self._root, self._mark).exists():
            raise TransientStoreError(
                f"{self.url} is not the store that files were moved to before, which has {self._mark}, or it is not "
                f"mounted: mount it; or if this store is meant, create that file in it, empty"
            )

    def holds(self, name: str, path: Path) -> bool | None:
        size = path.stat().st_size
        with self._translating_errors(name):
            told = self._file_info(name)
        if told is None:
            return None
        if int(told["size"]) != size:
            return False
        agrees = _checksum_agrees(self._kind, told, path, self.record_progress)
        return self._reads_the_same(name, path, size) if agrees is None else agrees

    def is_same(self, name: str, path: Path) -> bool:
        """Return whether the store's file is the local file itself, through a link or mount."""
        with self._translating_errors(name):
            return self._kind == "file" and (held := Path(self._root, name)).exists() and held.samefile(path)

    def put(self, name: str, path: Path) -> None:
        """Copy a local file into the store. No other process may write that name meanwhile."""
        if self._kind == "file":
            with self._translating_errors(name):
                self._put_local(Path(self._root, name), path)
            return
        from fsspec.callbacks import Callback

        callback = Callback(hooks={"progress": lambda *_, **__: self.record_progress()})
        with self._translating_errors(name):
            self._fs.put_file(str(path), f"{self._root}/{name}", callback=callback, **_PUT_OPTIONS[self._kind])

    def remove(self, name: str) -> None:
        with self._translating_errors(name), suppress(FileNotFoundError):
            self._fs.rm_file(f"{self._root}/{name}")

    def _file_info(self, name: str) -> dict[str, Any] | None:
        self._fs.invalidate_cache()
        try:
            told: dict[str, Any] = self._fs.info(f"{self._root}/{name}")
        except FileNotFoundError:
            return None
        return told if told["type"] == "file" else None

    def _put_local(self, target: Path, path: Path) -> None:
        self._require_directory()
        self.check_mark()
        for left in target.parent.glob(f".{escape(target.name)}{TEMPORARY}*"):
            left.unlink(missing_ok=True)
        write_whole(target, (piece for _, piece in self._numbered_pieces(path)), path.stat().st_mode & 0o777)

    def _require_directory(self) -> None:
        if not Path(self._root).is_dir():  # perhaps not mounted
            raise FileNotFoundError(f"{self._root} is not a directory; create it, or mount it")

    def _reads_the_same(self, name: str, path: Path, size: int) -> bool:
        for offset, piece in self._numbered_pieces(path):
            with self._translating_errors(name):
                found = self._fs.cat_file(f"{self._root}/{name}", start=offset, end=min(offset + PART_BYTES, size))
            if found != piece:
                return False
        return True

    def _numbered_pieces(self, path: Path) -> Iterator[tuple[int, bytes]]:
        for number, piece in enumerate(_read_parts(path)):
            yield number * PART_BYTES, piece
            self.record_progress()

    @contextmanager
    def _translating_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except TransientStoreError:
            raise
        except Exception as error:  # drivers have their own errors
            raise TransientStoreError(f"the store {self.url} failed at {name}: {error!r}") from error


def _kind_of(fs: Any, url: str, setting: str) -> str:
    protocols = (fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol
    kind = next((kind for kind in _KINDS if kind in protocols), None)
    if kind is None:
        raise ConfigError(
            f"{setting} is {url}; it takes s3://bucket/path, gs://bucket/path or file:///directory: other stores may "
            f"show incomplete files"
        )
    return kind


def _checksum_agrees(kind: str, told: dict[str, Any], path: Path, record_progress: Callable[[], object]) -> bool | None:
    if kind == "s3":
        # Encrypted files, and files sent in other parts, have other ETags.
        return str(told.get("ETag", "")).strip('"') in _possible_etags(path, record_progress) or None
    if kind == "gs" and (digest := told.get("md5Hash")):
        return bool(digest == base64.b64encode(_md5_digests(path, record_progress)[0]).decode())
    return None


def _possible_etags(path: Path, record_progress: Callable[[], object]) -> tuple[str, ...]:
    whole, parts = _md5_digests(path, record_progress)
    together = hashlib.md5(b"".join(parts), usedforsecurity=False).hexdigest()
    return (whole.hex(), f"{together}-{len(parts)}")


def _md5_digests(path: Path, record_progress: Callable[[], object]) -> tuple[bytes, list[bytes]]:
    whole = hashlib.md5(usedforsecurity=False)
    parts = []
    for piece in _read_parts(path):
        whole.update(piece)
        parts.append(hashlib.md5(piece, usedforsecurity=False).digest())
        record_progress()
    return whole.digest(), parts


def _read_parts(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PART_BYTES):
            yield piece


def _ignore_progress() -> None: ...
