"""The page about scrapyd, followed from top to bottom: scrapyds in directories of their own, and one crawl."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.running.ports import bind_lasting
from tests.support.running.processes import no_strays_below, spawn

pytestmark = pytest.mark.system

PAGE = (Path(__file__).parents[2] / "docs" / "scrapyd.md").read_text("utf-8")
PORTS = ("6379", "6801", "6802", "6803", "6804")
RUN_S_MAX = 1_800  # less than the test may take, so that its logs are shown
# However long a busy machine takes for the page's steps, the crawl outlasts them: 900 pages at 30 a minute take
# as long as all of the script may. Once the last step is done it goes on as fast as the page's settings say.
OUTLASTS_THE_STEPS = {
    "--pages-per-host 200": "--pages-per-host 30",
    "\nDOWNLOAD_DELAY = 0\n": "\nDOWNLOAD_DELAY = 0\nBIGCRAWL_SPEED = '30/min'\n",
    "\nfor port in 6801 6802": "\nfrontier speed unlimited\nfor port in 6801 6802",
}


def commands() -> str:
    """The commands of the page, on ports that are free, and that the system gives to nobody who asks for any port."""
    script = "\n".join(re.findall(r"^```bash\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    for told, tried in OUTLASTS_THE_STEPS.items():
        assert script.count(told) == 1
        script = script.replace(told, tried)
    with ExitStack() as stack:
        for port in PORTS:
            script = script.replace(port, str(bind_lasting(stack.enter_context(socket.socket()))))
    return script


def follow(script: str, directory: Path) -> str:
    """Run the script there; it must succeed. Whatever it leaves is killed. Returns what it said."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SCRAPY", "BIGCRAWL"))}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    said = directory / "said"
    with no_strays_below(directory), said.open("wb") as output:
        words = ["/bin/bash", "-c", f"set -euo pipefail\n{script}"]
        process = spawn(words, cwd=directory, env=environment, stdout=output, stderr=output)
        try:
            status: object = process.wait(RUN_S_MAX)
        except subprocess.TimeoutExpired:
            status = f"none within {RUN_S_MAX} s"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert status == 0, f"status {status}\n{said.read_text()[-6000:]}\n{logs_of(directory)}"
    return said.read_text()


def logs_of(directory: Path) -> str:
    """The ends of all logs, for who reads why it failed."""
    found = sorted([*directory.glob("?/logs/news/pages/*.log"), *directory.glob("?/scrapyd.log")])
    return "\n".join(f"--- {path.relative_to(directory)}\n{path.read_text()[-2000:]}" for path in found)


@pytest.mark.timeout(RUN_S_MAX + 60)
def test_one_crawl_outlives_all_that_befalls_its_nodes(tmp_path: Path) -> None:
    """One is added, killed, upgraded, drained, started twice: each page once, its item where scrapyd looks for it.

    The page's check of the web server's log is part of the script, and its status the script's.
    """
    said = follow(commands(), tmp_path)
    assert "coverage 1.0000" in said
    logs = [path.read_text() for path in tmp_path.glob("?/logs/news/pages/*.log")]
    ends = [found[-1] if (found := re.findall(r"Closing spider \((\w+)\)", log)) else "killed" for log in logs]
    assert {end: ends.count(end) for end in ends} == {"finished": 3, "shutdown": 3, "killed": 1}, ends
    assert not [line for log in logs for line in log.splitlines() if " ERROR: " in line or "Traceback" in line]
    items = [
        json.loads(line)
        for path in tmp_path.glob("?/items/news/pages/*.jl")
        for line in path.read_text().splitlines()
        if line.endswith("}")  # the killed node may have been writing
    ]
    assert {item.get("version", 1) for item in items} == {1, 2}, "two versions have worked on the crawl"
    from_log = int(re.findall(r"answers 200: ([\d,]+)", said)[-1].replace(",", ""))
    pages = {item["url"] for item in items if item["status"] == 200}
    assert from_log - 48 - 1 <= len(pages) <= from_log
