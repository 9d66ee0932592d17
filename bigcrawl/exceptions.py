"""Everything bigcrawl raises, by what the caller can do about it.

To add one: make it a child of the class whose remedy fits, give it the values the message needs as
attributes, and say in the message what, which value, which bound, and the remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike


class BigcrawlError(Exception):
    """The root of all errors raised by bigcrawl."""


class ConfigError(BigcrawlError):
    """Fix the settings, the command line, or what they point at; then start again."""


class TransientStoreError(BigcrawlError):
    """Redis or the disk did not answer; the same call may succeed later."""


class RewoundError(TransientStoreError):
    """Redis has forgotten something that it had; both sides must be brought in line before the call is repeated."""


class StaleCallError(TransientStoreError):
    """The call was made before both sides were compared, and not carried out; ask again for what is still wanted."""


class OwnershipLostError(BigcrawlError):
    """Another node owns the partition now; forget what was held for it."""


class ContractError(BigcrawlError):
    """A bug in bigcrawl or in its caller: a call outside its contract."""


class RequestNotStorableError(BigcrawlError):
    """A request holds something that cannot be stored; `key_path` names it."""

    def __init__(self, url: str, key_path: str, reason: str) -> None:
        super().__init__(f"request {url} cannot be stored: {key_path} {reason}")
        self.url = url
        self.key_path = key_path


class CorruptionError(BigcrawlError):
    """Bytes on disk or in Redis are not what was written; stop and run `scrapy frontier verify`."""

    def __init__(self, path: str | PathLike[str], offset: int, expected: object, found: object) -> None:
        super().__init__(f"{path}: damaged at byte {offset}: expected {expected}, found {found}")
        self.path = str(path)
        self.offset = offset
        self.expected = expected
        self.found = found


class OtherVersionError(CorruptionError):
    """A file was written by a version of bigcrawl with another format."""

    def __str__(self) -> str:
        return (
            f"{self.path}: format version {self.found}, and this bigcrawl reads {self.expected}: go on with the "
            f"one that wrote it"
        )
