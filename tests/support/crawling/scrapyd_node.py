"""A node of a crawl as scrapyd runs it: a scrapyd in a directory of its own, and jobs in it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.crawling.crawls import Crawl
from tests.support.redis_servers.redis_cluster import free_ports
from tests.support.running.processes import spawn, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable

PROJECT = "trial"
CONFIG = """
[scrapyd]
http_port = {port}
bind_address = 127.0.0.1
eggs_dir = eggs
logs_dir = logs
dbs_dir = dbs
items_dir =
poll_interval = 0.2
[settings]
trial = bigcrawl.settings
"""


class Job:
    """A job, with the methods of a process that tests use. Its end is what scrapyd's log says of it."""

    def __init__(self, log: Path, name: str) -> None:
        self._log = log
        self._name = name
        wait_until(lambda: bool(self._said("Process started: ")), f"scrapyd has started {name}")
        self._sent: int = signal.SIGKILL
        self.pid = int(re.findall(r"pid=(\d+)", self._said("Process started: "))[0])

    def __repr__(self) -> str:
        return f"<Job {self._name} pid={self.pid}>"

    def poll(self) -> int | None:
        """Its exit status; None while it runs. One that a signal has ended has minus the last that was sent."""
        if self._said("Process finished: "):
            return 0
        died = re.findall(r"exitstatus=(\w+)", self._said("Process died: "))
        return None if not died else -self._sent if died[0] == "None" else int(died[0])

    def wait(self, timeout_s: float | None = None) -> int:
        began = time.monotonic()
        while (status := self.poll()) is None:
            if timeout_s is not None and time.monotonic() - began > timeout_s:
                raise subprocess.TimeoutExpired(self._name, timeout_s)
            time.sleep(0.1)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            self._sent = number
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _said(self, what: str) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return next((line for line in lines if what in line and f"job='{self._name}'" in line), "")


@dataclass
class ScrapydCrawl(Crawl):
    """A crawl whose process is scrapyd's. It and the job have the environment that is set at the first start."""

    daemon: subprocess.Popen[bytes] | None = None
    port: int = 0

    def start(self, **more: Any) -> subprocess.Popen[bytes]:
        if self.daemon is None:
            self._start_daemon()
        self.starts += 1
        settings = [*self.options()[1::2], *(f"{name}={value}" for name, value in more.items())]
        job = f"job{self.starts}"
        fields = [("project", PROJECT), ("spider", "broad"), ("jobid", job)]
        fields += [("seeds", str(self.directory / "seeds.txt")), *self.arguments.items()]
        answer = self._ask("schedule.json", [*fields, *(("setting", one) for one in settings)])
        assert answer["status"] == "ok", answer
        self.process = Job(self.directory / "scrapyd.log", job)  # type: ignore[assignment]
        return self.process  # type: ignore[return-value]

    def cancel(self) -> None:
        """Have scrapyd cancel the latest job, as often as this is called: it sends SIGINT each time."""
        answer = self._ask("cancel.json", [("project", PROJECT), ("job", f"job{self.starts}")])
        assert answer == {"status": "ok", "prevstate": "running", "node_name": answer["node_name"]}, answer

    @property
    def log(self) -> Path:
        return self.directory / "logs" / PROJECT / "broad" / f"job{self.starts}.log"

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        super().__exit__(kind)
        self.end()

    def end(self) -> None:
        """Kill scrapyd, and a job that it has left."""
        if self.daemon is not None:
            os.killpg(self.daemon.pid, signal.SIGKILL)
            self.daemon.wait()

    def _start_daemon(self) -> None:
        [self.port] = free_ports(1)
        (self.directory / "scrapyd.conf").write_text(CONFIG.format(port=self.port))
        environment = {**self._environment(), "PYTHONPATH": str(Path(__file__).parents[3])}
        with (self.directory / "scrapyd.log").open("wb") as log:
            program = [str(Path(sys.executable).parent / "scrapyd")]
            self.daemon = spawn(program, cwd=self.directory, env=environment, stdout=log, stderr=log)
        wait_until(self._answers, "scrapyd answers")

    def _answers(self) -> bool:
        try:
            return bool(self._ask("daemonstatus.json")["status"] == "ok")
        except OSError:
            return False

    def _ask(self, action: str, fields: Iterable[tuple[str, str]] = ()) -> dict[str, Any]:
        data = urllib.parse.urlencode(list(fields)).encode() or None
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{action}", data, timeout=60) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found
