"""Real crawls for tests: `scrapy crawl` in processes of their own, and a simulated web for them."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import redis
from scrapy.settings import Settings

from bigcrawl.commands.running import parse_action, run_action
from bigcrawl.config import read_config
from bigcrawl.redisdb.embedded import running_url
from bigcrawl.scheduler.records.body import look_at_address
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.status import status_of
from bigcrawl_simweb.check.checker import CheckRules, Exchange, Report, check_exchanges
from bigcrawl_simweb.model.state import SavedWeb, load_web
from bigcrawl_simweb.serve.access_log import read_exchanges
from tests.support.crawling.verdicts import assert_all_counted
from tests.support.running import warm
from tests.support.running.processes import spawn, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bigcrawl.commands.result import Result
    from bigcrawl.config import Config

PARTITIONS = 8
"""Of a crawl whose test does not say how many. Each of the 256 by default costs at every start and step."""


class SimulatedWeb:
    """`python -m bigcrawl_simweb serve` below a directory; the same web again after a restart."""

    def __init__(self, directory: Path, *, hosts: int, pages: int, seed: int = 7, features: str = "") -> None:
        """Serve it; without `features`, those of the web that is saved there, or plain ones."""
        self.directory = directory
        self.log = directory / "access.log"
        directory.mkdir(parents=True, exist_ok=True)
        options = ["--hosts", str(hosts), "--pages-per-host", str(pages), "--seed", str(seed)]
        options += ["--features", features] if features else []
        command = ["bigcrawl_simweb", "serve", *options]
        self._process = warm.start([*command, "--state", directory, "--log", self.log], stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith(b"simweb ready")
        saved = load_web(directory)
        assert saved is not None
        self.saved: SavedWeb = saved
        self.web = saved.web()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.resume()
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def pause(self) -> None:
        """Answer nothing until `resume`; connections stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    @property
    def seeds(self) -> list[str]:
        return self.web.seeds(self.saved.port)

    def expected(self) -> dict[str, int]:
        """The known answer: status by URL."""
        return self.web.reachable(self.saved.port, self.seeds)

    def exchanges(self) -> list[Exchange]:
        return list(read_exchanges(self.log))

    def report(self, *, delay_ms: int = 0, retries: int = 2) -> Report:
        """Hold the server's log to the known answer."""
        return check_exchanges(
            self.exchanges(),
            CheckRules(
                expected=self.expected(),
                port=self.saved.port,
                host_delay_ms=delay_ms,
                host_delays_ms=self.web.crawl_delays_ms(),
                retries=retries,
                allows=self.web.allows,
            ),
        )


@dataclass
class Crawl:
    """A crawl that can be started, killed and resumed; one process at a time unless `another` is asked for."""

    directory: Path
    seeds: list[str]
    settings: dict[str, Any] = field(default_factory=dict)
    name: str = "test"
    arguments: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    cold: bool = False
    """Whether it starts as a user's does, with an interpreter of its own: to be measured, or with LD_PRELOAD."""
    spider: str = "broad"
    cwd: Path | None = None
    """Where its processes run; None: where the test does."""
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "seeds.txt").write_text("\n".join(self.seeds) + "\n")

    def command(self) -> list[str]:
        command = [sys.executable, "-m", "scrapy", "crawl", self.spider, "-a", f"seeds={self.directory / 'seeds.txt'}"]
        for name, value in self.arguments.items():
            command += ["-a", f"{name}={value}"]
        return command + self.options()

    def options(self) -> list[str]:
        """The crawl's settings, as Scrapy's commands take them; one that is None is left as it is by default."""
        settings = {
            "BIGCRAWL_CRAWL": self.name,
            "BIGCRAWL_STATE_DIR": self.directory / "state",
            "BIGCRAWL_WARC_DIR": self.directory / "warc",
            "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": 1,
            "BIGCRAWL_SERVER_DELAY": 0,
            "BIGCRAWL_PARTITIONS": PARTITIONS,
            "BIGCRAWL_PROGRESS_SECONDS": 1,
            "STATS_DUMP": 1,
            **self.settings,
        }
        return [word for name, value in settings.items() if value is not None for word in ("-s", f"{name}={value}")]

    def config(self) -> Config:
        """The crawl's settings as its commands read them."""
        settings = Settings()
        settings.setmodule("bigcrawl.settings", "project")
        settings.update(dict(word.split("=", 1) for word in self.options()[1::2]), "cmdline")
        return read_config(settings)

    def start(self, **more: Any) -> subprocess.Popen[bytes]:
        """Start a process of the crawl; the log of each start is a file of its own."""
        self.starts += 1
        extra = [word for name, value in more.items() for word in ("-s", f"{name}={value}")]
        with self.log.open("wb") as log:
            command = [*self.command(), *extra]
            is_plain = command[:2] == [sys.executable, "-m"] and not self.cold
            start = functools.partial(warm.start, command[2:]) if is_plain else functools.partial(spawn, command)
            self.process = start(env=self._environment(), stdout=log, stderr=log, cwd=self.cwd)
        return self.process

    @property
    def log(self) -> Path:
        """The log of the latest start."""
        return self.directory / f"log{self.starts}.txt"

    def kill(self) -> None:
        """kill -9, by process id."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def terminate(self) -> None:
        self.send(signal.SIGTERM)

    def send(self, number: signal.Signals) -> None:
        """Send its process a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self, timeout_s: float) -> int:
        """Wait for the end and return the exit status."""
        assert self.process is not None
        status = self.process.wait(timeout_s)
        assert_all_counted(self.log.read_text())
        return status

    def run(self, timeout_s: float = 300) -> int:
        self.start()
        return self.wait(timeout_s)

    def redis(self) -> redis.Redis:
        """A client of the crawl's Redis, also while no node runs."""
        if "BIGCRAWL_REDIS_URL" not in self.settings:
            wait_until(lambda: running_url(self.redis_directory) is not None, "the embedded server answers")
        url = self.settings.get("BIGCRAWL_REDIS_URL") or running_url(self.redis_directory)
        return redis.Redis.from_url(str(url))

    @property
    def redis_directory(self) -> Path:
        return self.directory / "state" / self.name / "redis"

    def taken(self) -> list[str]:
        """What Redis holds as taken and not acknowledged: the URLs."""
        urls: list[str] = []
        with self.redis() as client:
            for partition in range(int(self.settings.get("BIGCRAWL_PARTITIONS", PARTITIONS))):
                urls += map(_url_of, client.hvals(f"bigcrawl:{{{self.name}:p{partition}}}:taken"))
        return [url for url in urls if url]

    def frontier(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`scrapy frontier WORDS` of this crawl, a process of its own; unless `check` is False, it must succeed."""
        done = warm.run(["scrapy", "frontier", *words, *self.options()], env=self._environment())
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == 0 or not check, done.stderr
        return done

    def asked(self, *words: str) -> dict[str, Any]:
        """What `scrapy frontier WORDS --json` says, without a process: a start costs ten times as much as an answer.

        tests/integration/test_every_action.py starts one for each action.
        """
        if self.settings.get("BIGCRAWL_CRAWL", "") is None:  # the command finds the name
            return self.asked_by_command(*words)
        result = self.result(*words)
        assert result.status == 0, result.text
        answer: dict[str, Any] = json.loads(json.dumps(result.data))
        return answer

    def result(self, *words: str) -> Result:
        """What an action returns, however it ends; it takes no time to start."""
        return run_action(self.config(), words[0], parse_action(words[0], list(words[1:])))

    def asked_by_command(self, *words: str) -> dict[str, Any]:
        """The same by a process."""
        answer: dict[str, Any] = json.loads(self.frontier(*words, "--json").stdout)
        return answer

    def status(self) -> dict[str, Any]:
        status = self.asked("status")
        assert status["urls"]["uncounted"] == 0, status["urls"]
        return status

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "SCRAPY_SETTINGS_MODULE": "bigcrawl.settings", **self.environment}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()


@contextmanager
def held(crawl: Crawl, web: SimulatedWeb, by: Crawl | None = None) -> Iterator[None]:
    """Pause a crawl of one node that fetches, so that it is not over before others have joined on a slow machine.

    What is under way ends, and nothing else is fetched; what the node holds keeps its owner, and so do the partitions
    of it. `by` is who gives the orders, if not the node itself.
    """
    operator = by or crawl
    web.pause()  # at once, which an order is not
    operator.frontier("pause")
    wait_until(lambda: "speed: paused" in crawl.log.read_text(), "the node has heard it")
    web.resume()
    yield
    operator.frontier("resume")


def shares(crawl: Crawl) -> list[int]:
    """Partitions of each live node. It is asked here and not by a command, which may take as long as a crawl lasts."""
    status = in_crawl(crawl.config(), status_of)
    return sorted(node["partitions"] for node in status["nodes"].values())


def second_process_of(crawl: Crawl, name: str = "second") -> Crawl:
    """The same crawl from another process; its logs lie in a directory of their own, of that name."""
    settings = {
        **crawl.settings,
        "BIGCRAWL_STATE_DIR": crawl.directory / "state",
        "BIGCRAWL_WARC_DIR": crawl.directory / "warc",
    }
    return type(crawl)(
        crawl.directory / name,
        crawl.seeds,
        settings,
        crawl.name,
        crawl.arguments,
        crawl.environment,
        spider=crawl.spider,
    )


def _url_of(record: bytes) -> str:
    member = record.split(b"\n", 3)[3]
    return look_at_address(unpack_member(member).body)[0] if member else ""
