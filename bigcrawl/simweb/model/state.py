"""What a simulated web keeps in a directory so that the next start serves the same one: DIR/simweb.json.

The file is written once, when the port is known; format 2 is an object of `SavedWeb`'s fields and "format".
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl.simweb.basics.features import Naming, features_named
from bigcrawl.simweb.model.uniform import UniformWeb
from bigcrawl.simweb.model.web import Web

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT: Final = 2


@dataclass(frozen=True, slots=True)
class SavedWeb:
    """The arguments of a web, and the port it is served on; port 0: none yet.

    Attributes:
        pages_per_host: 0 when `pages`, of all hosts together, is given instead.
        shape: "web" for a `Web`, "uniform" for a `UniformWeb`, which takes seed and hosts alone.
        naming: one of `Naming`.
        features: names of `Feature` in alphabetical order with commas between them; "plain": none.
    """

    seed: int
    hosts: int
    pages_per_host: int
    agent: str
    port: int
    pages: int = 0
    shape: str = "web"
    naming: str = Naming.ADDRESS.value
    features: str = "plain"

    def web(self) -> Web:
        """The web these are the arguments of.

        Raises:
            ConfigError: there is no web with these arguments, or its shape is another.
        """
        if self.shape != "web":
            raise ConfigError(f"a web of shape {self.shape} has no end, and so no known answer; see docs/simweb.md")
        return Web(
            self.seed,
            self.hosts,
            self.pages_per_host or None,
            self.agent,
            pages=self.pages or None,
            naming=Naming(self.naming),
            features=features_named(self.features.split(",")),
        )

    def shaped(self) -> Web | UniformWeb:
        """The same, of any shape: what can be served."""
        return UniformWeb(self.seed, self.hosts) if self.shape == "uniform" else self.web()


_TYPES: Final = {field.name: str(field.type) for field in fields(SavedWeb)}


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
        values = json.loads(text)
    except ValueError as error:
        raise CorruptionError(path, 0, "a JSON object", text[:80]) from error
    if not isinstance(values, dict) or "format" not in values:
        raise CorruptionError(path, 0, "an object with a format", text[:80])
    if values.pop("format") != _FORMAT:
        raise ConfigError(f"{path} has another format than {_FORMAT}; use the version of bigcrawl that wrote it")
    if {name: type(value).__name__ for name, value in values.items()} != _TYPES:
        raise CorruptionError(path, 0, f"fields {', '.join(_TYPES)}", text[:80])
    return SavedWeb(**values)


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
