"""Stores the arguments of a simulated web in DIR/simweb.json, so that the next start serves the same web.

The file is written once, when the port is known. Format 2 is an object of `SavedWeb`'s fields and "format".
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl.json_text import read_json
from bigcrawl.simweb.basics.features import Naming, features_named
from bigcrawl.simweb.model.topical import TopicalWeb
from bigcrawl.simweb.model.uniform import UniformWeb
from bigcrawl.simweb.model.web import Web

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT: Final = 2


@dataclass(frozen=True, slots=True)
class SavedWeb:
    """The arguments of a web, and the port it is served on; port 0: none yet.

    Attributes:
        pages_per_host: 0 if `pages`, of all hosts together, is given instead.
        shape: "web" for a `Web`, "uniform" for a `UniformWeb`, which takes only seed and hosts, "topical" for a
            `TopicalWeb`, which takes pages_per_host too.
        naming: one of `Naming`.
        features: names of `Feature` in alphabetical order, separated by commas; "plain": none.
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
        """Return the web with these arguments.

        Raises:
            ConfigError: the arguments are invalid, or its shape is a different one.
        """
        if self.shape != "web":
            raise ConfigError(f"a web of shape {self.shape} has no known answer; see docs/simweb.md")
        return Web(
            self.seed,
            self.hosts,
            self.pages_per_host or None,
            self.agent,
            pages=self.pages or None,
            naming=Naming(self.naming),
            features=features_named(self.features.split(",")),
        )

    def shaped(self) -> Web | UniformWeb | TopicalWeb:
        """Return the web with these arguments, of any shape that can be served.

        Raises:
            ConfigError: the arguments are invalid.
        """
        match self.shape:
            case "uniform":
                return UniformWeb(self.seed, self.hosts)
            case "topical":
                return TopicalWeb(self.seed, self.hosts, self.pages_per_host)
            case _:
                return self.web()


_TYPES: Final = {field.name: str(field.type) for field in fields(SavedWeb)}


def path_in(directory: Path) -> Path:
    """Return the path of the file in a directory."""
    return directory / "simweb.json"


def load(directory: Path) -> SavedWeb | None:
    """Return the web stored in a directory, or None.

    Raises:
        ConfigError: the file has another version, or cannot be read.
        CorruptionError: the file is not what `save` wrote.
    """
    path = path_in(directory)
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    try:
        values = read_json(text)
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
    """Write the file so that a crash leaves it whole or absent. Creates the directory if it is missing."""
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
