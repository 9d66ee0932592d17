"""Writes the parts of a WACZ file, each once and in a stream, and their hashes."""

from __future__ import annotations

import hashlib
import json
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from bigcrawl import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

WACZ_VERSION: Final = "1.1.1"
_PIECE_BYTES: Final = 1 << 20
_replace_others = re.compile(r"[^a-z0-9.]").sub  # in names of the Data Package standard


class Part:
    """One part that is being written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._sha256.update(data)
        self.size += len(data)

    def copy(self, file: BinaryIO) -> None:
        while piece := file.read(_PIECE_BYTES):
            self.write(piece)

    @property
    def hash(self) -> str:
        return f"sha256:{self._sha256.hexdigest()}"


class WaczArchive:
    """A WACZ file: its parts one after the other, `describe`, and `close`.

    Source: WACZ 1.1.1, 4 and 5 (datapackage.json, datapackage-digest.json); all parts are stored as they are.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._zip = ZipFile(file, "w", ZIP_STORED, allowZip64=True)
        self._now = time.gmtime()
        self._resources: list[dict[str, Any]] = []

    @contextmanager
    def part(self, path: str) -> Iterator[Part]:
        info = ZipInfo(path, self._now[:6])
        with self._zip.open(info, "w", force_zip64=True) as file:
            part = Part(file)  # type: ignore[arg-type]
            yield part
        name = f"{len(self._resources)}-{_replace_others('-', path.rpartition('/')[2].lower())}"
        self._resources.append({"name": name, "path": path, "hash": part.hash, "bytes": part.size})

    def describe(self, title: str) -> None:
        """Write the description of the parts, and its hash."""
        package = {
            "profile": "data-package",
            "wacz_version": WACZ_VERSION,
            "software": f"bigcrawl/{__version__}",
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", self._now),
            "title": title,
            "resources": list(self._resources),
        }
        with self.part("datapackage.json") as part:
            part.write(json.dumps(package, indent=2).encode())
        digest = {"path": "datapackage.json", "hash": part.hash}
        with self.part("datapackage-digest.json") as part:
            part.write(json.dumps(digest, indent=2).encode())

    def close(self) -> None:
        self._zip.close()
