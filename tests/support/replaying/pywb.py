"""A real pywb, which replays WARC files, or a WACZ file, on a free port; `make check-system` brings it."""

from __future__ import annotations

import http.client
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.support.running.processes import spawn, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

WAYBACK = Path(__file__).resolve().parents[3] / "build" / "pywb" / "bin" / "wayback"
CONFIG = """
collections:
  pages:
    index_paths: {directory}/
    archive_paths: {directory}/
"""
PROXY_CONFIG = """
proxy:
  coll: pages
  use_banner: false
  use_head_insert: false
  enable_content_rewrite: false
"""


class Replayed(NamedTuple):
    """What pywb answers for a page: its status, its headers by names in lower case, and its body as it was sent."""

    status: int
    headers: dict[str, str]
    body: bytes


class Pywb:
    """Asks a pywb that listens on a port."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def close(self) -> None:
        self._connection.close()

    def page(self, url: str, stamp: str) -> Replayed:
        """Return a capture without anything that pywb would add to a page."""
        path = f"/pages/{stamp}id_/{url}"
        try:
            return sent_by(self._connection, path, {})
        except ConnectionError:  # pywb may close a connection between two requests, as any server may
            self._connection.close()
            return sent_by(self._connection, path, {})


def sent_by(connection: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> Replayed:
    """Return an answer with its body as it was sent, without its chunks."""
    connection.request("GET", path, headers={"Accept-Encoding": "gzip, deflate, br, zstd", **headers})
    answer = connection.getresponse()
    told = {name.lower(): value for name, value in answer.getheaders()}
    return Replayed(answer.status, told, answer.read())


@contextmanager
def pywb(files: Path, work: Path) -> Iterator[Pywb]:
    """Replay the files of a directory."""
    work.mkdir()
    (work / "config.yaml").write_text(CONFIG.format(directory=files))
    with _served(work) as port:
        wayback = Pywb(port)
        yield wayback
        wayback.close()


@contextmanager
def pywb_proxy(wacz: Path, work: Path) -> Iterator[int]:
    """Replay a WACZ file as an HTTP proxy; yields its port. URLs are those of the crawl, and nothing is added."""
    work.mkdir()
    (work / "config.yaml").write_text(PROXY_CONFIG)
    manager = WAYBACK.with_name("wb-manager")
    for words in (["init", "pages"], ["add", "pages", str(wacz), "--unpack-wacz"]):
        done = subprocess.run([manager, *words], cwd=work, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    with _served(work) as port:
        yield port


@contextmanager
def _served(work: Path) -> Iterator[int]:
    assert WAYBACK.exists(), f"{WAYBACK} is missing; run: scripts/install_pywb {WAYBACK.parents[1]}"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (work / "log").open("wb") as log:
        command = [WAYBACK, "--bind", "127.0.0.1", "--port", str(port), "--directory", work]
        process = spawn(list(map(str, command)), cwd=work, stdout=log, stderr=log)
    try:
        wait_until(lambda: is_open(port) or process.poll() is not None, "pywb listens")
        assert process.poll() is None, (work / "log").read_text()
        yield port
    finally:
        process.kill()
        process.wait()


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
