"""The errors of bigcrawl; each class stands for one remedy.

A message names the problem, with value and bound, and the remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike


class BigcrawlError(Exception):
    pass


class ConfigError(BigcrawlError):
    """Fix the settings, the command line, or the things they name; then start again."""


class MissingAnnexError(ConfigError):
    """An annex, a package beside bigcrawl, is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"this takes {package}, which is not installed: pip install bigcrawl brings it, and so does `make crawl` "
            f"in a checkout"
        )


class LostCrawlError(ConfigError):
    """The Redis does not know a crawl that a directory or a store has."""


class TransientStoreError(BigcrawlError):
    """Redis or the disk did not answer; the same call may succeed later."""


class RewoundError(TransientStoreError):
    """Redis has lost data; reconcile, then repeat the call."""


class StaleCallError(TransientStoreError):
    """The call was sent before a reconciliation and was refused; repeat it if still needed."""


class OwnershipLostError(BigcrawlError):
    """Another node owns the partition now; drop the URLs held for it."""


class ContractError(BigcrawlError):
    """A bug: a call violates its contract."""


class RequestNotStorableError(BigcrawlError):
    """A request holds a value that cannot be stored, at `key_path` and of type `kind`."""

    def __init__(self, url: str, key_path: str, reason: str, kind: str = "") -> None:
        super().__init__(f"request {url} cannot be stored: {key_path} {reason}")
        self.url = url
        self.key_path = key_path
        self.kind = kind


class CorruptionError(BigcrawlError):
    """Bytes on disk or in Redis differ from those written; stop and run `scrapy frontier verify`."""

    def __init__(self, path: str | PathLike[str], offset: int, expected: object, found: object) -> None:
        super().__init__(f"{path}: damaged at byte {offset}: expected {expected}, found {found}")
        self.path = str(path)
        self.offset = offset
        self.expected = expected
        self.found = found


class OtherVersionError(CorruptionError):
    def __str__(self) -> str:
        return (
            f"{self.path}: format version {self.found}, and this bigcrawl reads {self.expected}: continue with "
            f"the one that wrote it"
        )
