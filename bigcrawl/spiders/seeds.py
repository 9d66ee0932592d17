"""Seeds: the URLs that a spider is given, as an argument or as a file with one a line."""

from __future__ import annotations

import hashlib
import logging
import os
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.text_files.reading import lines_of
from bigcrawl.url.canonical import UrlError, canonicalize, refuse_credentials

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

logger = logging.getLogger(__name__)

SEEDS_PER_BATCH: Final = 1_000
_LINE_CHARS_MAX: Final = 4 << 20
_TOLD_MAX: Final = 5  # skipped lines that are logged; a file of garbage must not fill the log


class Seeds:
    """The seeds of a spider. A file is read when it is needed, line by line.

    Attributes:
        text: URLs with spaces between them, or the name of a file.

    Raises:
        ConfigError: the text is neither.
    """

    def __init__(self, given: str | PathLike[str] | Iterable[str]) -> None:
        if isinstance(given, PathLike):
            given = os.fspath(given)
        elif isinstance(given, list | tuple):
            given = " ".join(map(str, given))
        if not isinstance(given, str):
            raise ConfigError(f"seeds is {given!r}: it must be URLs, or the name of a file of them")
        self.text = given

    @property
    def is_missing(self) -> bool:
        """Whether the seeds are in a file that is missing on this machine."""
        return bool(self.text) and not self._are_urls and not self._file_path.exists()

    @property
    def version(self) -> str:
        """A digest of the file's bytes; empty for URLs, and for an unreadable file."""
        if not self.text or self._are_urls:
            return ""
        try:
            with self._file_path.open("rb") as file:
                return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        except OSError:
            return ""

    def read_lines(self) -> Iterator[str]:
        if self._are_urls:
            yield from self.text.split()
            return
        path = self._file_path
        if not self.text or not os.access(path, os.R_OK) or path.is_dir():
            raise ConfigError(f"seeds={self.text!r} is neither URLs nor a file that can be read")
        try:
            with path.open("rb") as file:
                for text in lines_of(file, _LINE_CHARS_MAX):
                    if text and not text.startswith("#"):
                        yield text
        except ValueError as error:
            raise ConfigError(f"seeds={self.text!r} is not a list of URLs: {error}") from None

    def url_batches(self) -> Iterator[list[str]]:
        """Yield canonical URLs in batches; invalid ones are logged and skipped. Raises what `read_lines` raises."""
        batch: list[str] = []
        refused = 0
        for number, line in enumerate(self.read_lines(), 1):
            try:
                batch.append(seed_url(line))
            except UrlError as error:
                refused += 1
                if refused <= _TOLD_MAX:
                    logger.warning("seed %(number)d is skipped: %(error)s", {"number": number, "error": error})
            if len(batch) >= SEEDS_PER_BATCH:
                yield batch
                batch = []
        if refused > _TOLD_MAX:
            logger.warning("%(refused)d seeds in all were skipped", {"refused": refused})
        if batch:
            yield batch

    @property
    def _are_urls(self) -> bool:
        return "://" in self.text

    @property
    def _file_path(self) -> Path:
        return Path(self.text).expanduser()


def seed_url(line: str) -> str:
    """Return the canonical URL of a seed; raise UrlError if it cannot be crawled, or has a user or password."""
    refuse_credentials(line)
    return canonicalize(line)
