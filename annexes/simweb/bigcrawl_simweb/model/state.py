"""Stores the arguments of a web in DIR/simweb.json, so that the next start serves the same web."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError, CorruptionError
from bigcrawl_simweb.basics.features import Naming, features_named
from bigcrawl_simweb.model.topical import TopicalWeb
from bigcrawl_simweb.model.uniform import UniformWeb
from bigcrawl_simweb.model.web import Web

if TYPE_CHECKING:
    from pathlib import Path

_FORMAT: Final = 2


@dataclass(frozen=True, slots=True)
class SavedWeb:
    """The arguments of a web, and its port, 0 if it has none yet.

    Attributes:
        pages_per_host: 0 if `pages`, of all hosts together, is given instead.
        shape: "web", "uniform" or "topical".
        features: names in alphabetical order, separated by commas; "plain": none.
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

    def web_of_shape(self) -> Web | UniformWeb | TopicalWeb:
        match self.shape:
            case "uniform":
                return UniformWeb(self.seed, self.hosts)
            case "topical":
                return TopicalWeb(self.seed, self.hosts, self.pages_per_host)
            case _:
                return self.web()


_TYPES: Final = {field.name: str(field.type) for field in fields(SavedWeb)}


def path_in(directory: Path) -> Path:
    return directory / "simweb.json"


def load_web(directory: Path) -> SavedWeb | None:
    """Return the web stored in a directory, or None.

    Raises:
        ConfigError: the file has another version, or is unreadable.
        CorruptionError: the file was not written by `save_web`.
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
    except (ValueError, RecursionError) as error:
        raise CorruptionError(path, 0, "a JSON object", text[:80]) from error
    if not isinstance(values, dict) or "format" not in values:
        raise CorruptionError(path, 0, "an object with a format", text[:80])
    if values.pop("format") != _FORMAT:
        raise ConfigError(f"{path} has another format than {_FORMAT}; use the version of bigcrawl that wrote it")
    if {name: type(value).__name__ for name, value in values.items()} != _TYPES:
        raise CorruptionError(path, 0, f"fields {', '.join(_TYPES)}", text[:80])
    return SavedWeb(**values)


def save_web(directory: Path, saved: SavedWeb) -> None:
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
