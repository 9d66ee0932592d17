"""A duplicate filter on disk for Scrapy's own scheduler. It needs neither Redis nor the frontier.

DUPEFILTER_CLASS = "bigcrawl.scheduler.dupefilter.DrumDupeFilter"
"""

from __future__ import annotations

import logging
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scrapy.dupefilters import RFPDupeFilter

from bigcrawl.drum.files import DiskFiles, replace_surely, store_errors
from bigcrawl.drum.key_set import KeySet
from bigcrawl.exceptions import CorruptionError, TransientStoreError
from bigcrawl.url.key import PUBLIC_KEYS, SECRET_BYTES, Keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.utils.request import RequestFingerprinterProtocol

logger = logging.getLogger(__name__)

DIRECTORY: Final = "requests.drum"
KEY_FILE: Final = "requests.key"

_RETRY_AFTER = 1000


class DrumDupeFilter(RFPDupeFilter):
    """Filters as Scrapy's `RFPDupeFilter` does, in 30 MB of memory for any number of requests.

    It keeps 64 bits of a request's fingerprint (REQUEST_FINGERPRINTER_CLASS): with 10^8 requests, one crawl in 3,700
    takes one request for a duplicate of another. Logging (DUPEFILTER_DEBUG) and stats are Scrapy's.

    The job directory gets ``requests.drum/`` (see `bigcrawl.drum.key_set`), at most 8 bytes a request, and the secret
    of the hash, ``requests.key``, so that no site can make a URL that passes for a duplicate of another site's. After
    kill -9 a resumed job has forgotten at most the last 255 requests, about as many as Scrapy's filter. A
    ``requests.seen`` of an earlier run is not read. Without JOBDIR the directory is temporary; only kill -9 leaves it.
    """

    def __init__(
        self, path: str | None = None, debug: bool = False, *, fingerprinter: RequestFingerprinterProtocol | None = None
    ) -> None:
        super().__init__(None, debug, fingerprinter=fingerprinter)
        self._path = path
        self._temporary: Path | None = None
        self._keys: KeySet | None = None
        self._hash: Callable[[bytes], int] = PUBLIC_KEYS.of_bytes
        self._has_failed = False
        self._requests_to_retry = 0

    def open(self) -> None:
        if self._path is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="bigcrawl-dupefilter-"))
        elif Path(self._path, "requests.seen").exists():
            logger.warning("%s/requests.seen could not be read: its requests may be made again", self._path)
        directory = self._temporary or Path(self._path or "")
        self._hash = Keys(_secret_in(directory)).of_bytes
        self._keys = KeySet(directory / DIRECTORY)

    def request_seen(self, request: Request) -> bool:
        assert self._keys is not None, "the scheduler opens its filter"
        # Hashed, because the first bytes of a user's own fingerprints may all be alike.
        is_seen = self._keys.add(self._hash(self.fingerprinter.fingerprint(request)))
        if self._requests_to_retry:
            self._requests_to_retry -= 1
        elif self._keys.is_due:
            self._write(self._keys)
        return is_seen

    def close(self, reason: str) -> None:
        try:
            if self._keys is not None and self._temporary is None:
                self._keys.close()
        finally:
            self._keys = None
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    def _write(self, keys: KeySet) -> None:
        """Write the due requests. A full disk does not stop the crawl: they stay in memory."""
        try:
            keys.write()
        except TransientStoreError as error:
            if not self._has_failed:
                logger.error("requests are remembered in memory only: %s", error)  # noqa: TRY400 - not a bug
            self._has_failed = True
            self._requests_to_retry = _RETRY_AFTER
        else:
            self._has_failed = False


def _secret_in(directory: Path) -> bytes:
    """Return the job's secret. A new job gets one; one begun without a secret continues without.

    Raises:
        CorruptionError: the file holds no secret.
        TransientStoreError: the disk failed.
    """
    path, files = directory / KEY_FILE, DiskFiles()
    with store_errors(directory):
        if files.exists(path):
            if len(secret := files.read(path)) != SECRET_BYTES:
                raise CorruptionError(path, 0, f"a secret of {SECRET_BYTES} bytes", f"{len(secret)} bytes")
            return secret
        if files.exists(directory / DIRECTORY):
            return b""
        secret = secrets.token_bytes(SECRET_BYTES)
        files.make_directory(directory)
        temporary = path.with_suffix(".tmp")
        files.write_new(temporary, [secret])
        files.sync_file(temporary)
        replace_surely(files, temporary, path, secret)
        return secret
