"""`make crawl` as it is run: killed and run again, its verdict on the server's log is the true one.

The job itself starts warm; the scrapy and the web that it starts have interpreters of their own, as a user's.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bigcrawl import main_job
from tests.support.crawling.crawls import SimulatedWeb
from tests.support.running import warm
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

HOSTS, PAGES = 8, 15
IN_PROCESS = 24
OUTLASTING_S = 0.8  # between pages of a host, so that the crawl is not over when a busy machine comes to ending it


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Where the job runs; its small web is a smaller one."""
    with no_strays_below(tmp_path):
        with SimulatedWeb(tmp_path / main_job.WEB, hosts=HOSTS, pages=PAGES):
            pass
        yield tmp_path


class Job:
    """`make crawl`, without make."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = directory / main_job.WEB / "access.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str, pages: int = 0, delay_s: float = 0.25) -> subprocess.Popen[bytes]:
        command = ["bigcrawl.main_job", *options, "--"]
        settings = {"IN_PROCESS_MAX": IN_PROCESS, "MAX_PAGES": pages, "PARTITIONS": 16, "HOST_DELAY": delay_s}
        command += [word for name, value in settings.items() for word in ("-s", f"BIGCRAWL_{name}={value}")]
        with (self.directory / "said.txt").open("wb") as said:
            self.process = warm.start(command, cwd=self.directory, stdout=said, stderr=said)
        return self.process

    def run(self, *options: str, pages: int = 0) -> int:
        return self.start(*options, pages=pages).wait(600)

    @property
    def said(self) -> str:
        return (self.directory / "said.txt").read_text()

    def wait_for_requests(self, count: int) -> None:
        wait_until(lambda: self.log.exists() and self.log.read_bytes().count(b"\n") > count, "the crawl is under way")

    def crawler(self) -> int:
        """The process id of the job's scrapy."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        [found] = [pid for pid in children if b"\0scrapy\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        return int(found)


def may_repeat(said: str) -> int:
    """How many pages the verdict allows to be fetched twice."""
    found = re.search(r"nodes were killed, with (\d+) URLs in process at most", said)
    return int(found[1]) if found else 0


@pytest.mark.long("four runs that start cold; the job that is stopped has two")
def test_crawl_that_is_killed_and_run_again_ends_well(directory: Path) -> None:
    """kill -9 of the crawl: the job says so and fails; the same command ends with coverage, and repeats explained."""
    job = Job(directory)
    job.start(delay_s=OUTLASTING_S)
    job.wait_for_requests(40)
    os.kill(job.crawler(), signal.SIGKILL)
    assert job.process is not None
    assert job.process.wait(300) == 128 + signal.SIGKILL
    assert "killed" in job.said
    assert job.run() == 0, job.said
    assert may_repeat(job.said) == IN_PROCESS
    assert job.run() == 0, "finished, and the log is what it was"
    assert may_repeat(job.said) == IN_PROCESS
    assert job.run("--fresh", pages=30) == 0, job.said
    assert may_repeat(job.said) == 0
    assert "starts from scratch" in job.said


@pytest.mark.fault
def test_job_that_is_killed_whole_ends_well(directory: Path) -> None:
    """kill -9 of everything, twice: two deaths."""
    job = Job(directory)
    for requests in (30, 60):
        job.start(delay_s=OUTLASTING_S)
        job.wait_for_requests(requests)
        assert job.process is not None
        os.killpg(job.process.pid, signal.SIGKILL)
        job.process.wait()
    assert job.run() == 0, job.said
    assert may_repeat(job.said) == 2 * IN_PROCESS


def test_clean_stop_explains_no_repeat(directory: Path) -> None:
    """Ctrl-C, and the same command: nothing may have been fetched twice."""
    job = Job(directory)
    job.start(delay_s=OUTLASTING_S)
    job.wait_for_requests(40)
    os.kill(job.crawler(), signal.SIGINT)
    assert job.process is not None
    assert job.process.wait(300) == 0, job.said
    assert job.run() == 0, job.said
    assert may_repeat(job.said) == 0
