"""The project as an egg, built and run the way scrapyd-client and scrapyd do it: zipped."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from tests.support.crawling.crawls import SimulatedWeb
from tests.support.running.processes import no_strays_below, spawn, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[3]
# The version in the egg and nowhere else: what says it was run from the egg.
EGG_VERSION = "0.0.0+egg"
CRAWL_S_MAX = 300


@pytest.fixture(scope="module")
def egg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The egg of a copy of the project."""
    source = tmp_path_factory.mktemp("project")
    for name in ("pyproject.toml", "setup.py", "scrapy.cfg", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    for folder in ("bigcrawl", "annexes"):
        shutil.copytree(PROJECT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    init = source / "bigcrawl" / "__init__.py"
    version = next(line for line in init.read_text().splitlines() if line.startswith("__version__ = "))
    init.write_text(init.read_text().replace(version, f'__version__ = "{EGG_VERSION}"'))
    path = source / "project.egg"
    command = [sys.executable, "-W", "ignore", "-m", "scrapyd_client.deploy", "--build-egg", str(path)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert zipfile.is_zipfile(path)
    return path


class Scrapyd:
    """A scrapyd that listens on a unix socket, with all it writes in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = directory / "scrapyd.log"
        self._socket = directory / "scrapyd.sock"
        config = {"bind_address": "", "unix_socket_path": self._socket, "poll_interval": 0.1, "max_proc": 1}
        lines = [f"{name} = {value}" for name, value in config.items()]
        (directory / "scrapyd.conf").write_text("\n".join(["[scrapyd]", *lines]))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY")}
        with self.log.open("wb") as log:
            self._process = spawn(
                [sys.executable, "-m", "scrapyd"], cwd=directory, env=environment, stdout=log, stderr=log
            )
        wait_until(self._answers, "scrapyd that answers")

    def stop(self) -> None:
        """End it and what it still runs: jobs outlive their scrapyd."""
        for job in self.jobs("running"):
            os.kill(job["pid"], signal.SIGKILL)
        self._process.terminate()
        self._process.wait(timeout=300)

    def jobs(self, state: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("GET", "listjobs.json?project=bigcrawl")[state]
        return found

    def ask(self, method: str, path: str, body: bytes = b"", kind: str = "") -> dict[str, Any]:
        """Call its web service; the answer must be one of success."""
        connection = _UnixConnection(self._socket)
        with contextlib.closing(connection):
            connection.request(method, f"/{path}", body, {"Content-Type": kind} if kind else {})
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
        assert answer["status"] == "ok", answer
        return answer

    def post(self, path: str, fields: list[tuple[str, object]]) -> dict[str, Any]:
        return self.ask("POST", path, urlencode(fields).encode(), "application/x-www-form-urlencoded")

    def add_egg(self, egg: Path) -> None:
        """Deploy as scrapyd-client does."""
        boundary = "a-line-that-no-zip-file-holds"
        parts = b"".join(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in (("project", "bigcrawl"), ("version", "1"))
        )
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="egg"; filename="project.egg"\r\n\r\n'
        body = parts + head.encode() + egg.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
        self.ask("POST", "addversion.json", body, f"multipart/form-data; boundary={boundary}")

    def _answers(self) -> bool:
        assert self._process.poll() is None, self.log.read_text()
        with contextlib.suppress(OSError):
            return bool(self.ask("GET", "daemonstatus.json"))
        return False


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("scrapyd", timeout=300)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@pytest.fixture
def scrapyd(tmp_path: Path) -> Iterator[Scrapyd]:
    directory = tmp_path / "d"
    directory.mkdir()
    with no_strays_below(tmp_path):
        server = Scrapyd(directory)
        try:
            yield server
        finally:
            server.stop()


@pytest.mark.long("a scrapyd of its own; the archive of the package: tests/unit/test_packaging.py")
def test_egg_crawls_under_scrapyd(egg: Path, scrapyd: Scrapyd, tmp_path: Path) -> None:
    """Deployed and scheduled, the zipped project crawls a known web to its end: each page once, politely, its
    own Redis started from within and stopped with it, pages in WARC files.
    """
    with SimulatedWeb(tmp_path / "web", hosts=4, pages=6) as web:
        scrapyd.add_egg(egg)
        assert scrapyd.ask("GET", "listspiders.json?project=bigcrawl")["spiders"] == [
            *("broad", "feeds", "focused", "recrawl", "sample", "site", "sitemap")
        ]
        settings = {
            "BIGCRAWL_STATE_DIR": tmp_path / "state",
            "BIGCRAWL_WARC_DIR": tmp_path / "warc",
            "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": 1,
            "BIGCRAWL_HOST_DELAY": 0,
            "BIGCRAWL_SERVER_DELAY": 0,
            "BIGCRAWL_PARTITIONS": 8,
            "RETRY_ENABLED": 0,
        }
        fields: list[tuple[str, object]] = [
            ("project", "bigcrawl"),
            ("spider", "broad"),
            ("seeds", " ".join(web.seeds)),
        ]
        fields += [("setting", f"{name}={value}") for name, value in settings.items()]
        job = scrapyd.post("schedule.json", fields)["jobid"]
        wait_until(lambda: bool(scrapyd.jobs("finished")), "the end of the job", CRAWL_S_MAX)
        log = (scrapyd.directory / "logs" / "bigcrawl" / "broad" / f"{job}.log").read_text()
        said = scrapyd.log.read_text()
        report = web.report()
    assert "Process finished" in said, said
    assert "Closing spider (finished)" in log, log
    assert " ERROR: " not in log, log
    assert "Traceback" not in log, log
    assert report.ok, str(report)
    assert len(web.expected()) >= 24
    assert not (tmp_path / "state" / "broad" / "redis" / "redis.sock").exists()

    (path,) = (tmp_path / "warc").glob("*.warc.gz")
    with path.open("rb") as stream:
        kinds = [(record.record_type, record.reader.read()) for record in ArchiveIterator(stream, parse_http=False)]
    (info,) = (body for kind, body in kinds if kind == WarcRecordType.warcinfo)
    assert f"software: bigcrawl/{EGG_VERSION} ".encode() in info
    pages = sum(kind == WarcRecordType.response for kind, _ in kinds)
    assert pages == len(web.exchanges())
