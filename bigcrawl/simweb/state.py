"""What a simulated web keeps in a directory so that the next start serves the same one: DIR/simweb.json.

The file is written once, when the port is known; format 1 is an object of `SavedWeb`'s fields and "format".
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl.simweb.web import Web

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT: Final = 1
_TYPES: Final = {"seed": int, "hosts": int, "pages_per_host": int, "agent": str, "port": int}


@dataclass(frozen=True, slots=True)
class SavedWeb:
    """The arguments of a `Web`, and the port it is served on; port 0: none yet."""

    seed: int
    hosts: int
    pages_per_host: int
    agent: str
    port: int

    def web(self) -> Web:
        """The web these are the arguments of."""
        return Web(self.seed, self.hosts, self.pages_per_host, self.agent)


def path_in(directory: Path) -> Path:
    """Where a directory keeps it."""
    return directory / "simweb.json"


def load(directory: Path) -> SavedWeb | None:
    """The web a directory keeps; None when it keeps none.

    Raises:
        ConfigError: it was written by another version, or cannot be read.
        CorruptionError: it is not what `save` wrote.
    """
    path = path_in(directory)
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise CorruptionError(path, 0, "a JSON object", text[:80]) from error
    if not isinstance(fields, dict) or "format" not in fields:
        raise CorruptionError(path, 0, "an object with a format", text[:80])
    if fields.pop("format") != _FORMAT:
        raise ConfigError(f"{path} has another format than {_FORMAT}; use the version of bigcrawl that wrote it")
    if {name: type(value) for name, value in fields.items()} != _TYPES:
        raise CorruptionError(path, 0, f"fields {', '.join(_TYPES)}", text[:80])
    return SavedWeb(**fields)


def save(directory: Path, saved: SavedWeb) -> None:
    """Write the file so that a crash leaves it whole or absent; makes the directory when there is none."""
    path = path_in(directory)
    temporary = path.with_suffix(".tmp")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with temporary.open("w") as file:
            json.dump({"format": _FORMAT, **asdict(saved)}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _fsync_directory(directory)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


def _fsync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
