"""One run of the spider: on stock Scrapy, or bigcrawl's add-on is in use, so and nothing else different."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.integration.downloads.case import fill
from tests.support.running import warm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.integration.downloads.origin import Hit, Origin

REPOSITORY = Path(__file__).parents[3]
RUN_S_MAX = 300
STOP_S_MAX = 300

COMMON: Mapping[str, Any] = {
    "RETRY_TIMES": 1,
    "REDIRECT_MAX_TIMES": 4,
    "URLLENGTH_LIMIT": 10_000,
    "CONCURRENT_REQUESTS": 32,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "HTTPERROR_ALLOW_ALL": True,
    "LOG_LEVEL": "INFO",
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
}
ADDED: Mapping[str, Any] = {
    "ADDONS": {"bigcrawl.addon.Addon": 500},
    "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": True,
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_SERVER_DELAY": 0,
    "BIGCRAWL_HOST_CONNECTIONS": 16,
    "BIGCRAWL_PARTITIONS": 4,
    # All rows are of a few hosts, and many of them fail: how many in a row goes by when each of them comes.
    "BIGCRAWL_BACKOFF": 0,
    "BIGCRAWL_HOST_FAILURES_MAX": 0,
    "BIGCRAWL_LAST_FAILURES_MAX": 0,
    "BIGCRAWL_TRUNCATE": False,  # docs/settings.md: here an answer is cut where Scrapy fails the request
    # Stock Scrapy asks for no robots.txt by itself: the origin must see the same of both.
    "BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What one side's spider and the origin wrote down; `reason` is why the spider closed, `log` the output."""

    records: dict[str, list[dict[str, Any]]]
    stats: dict[str, Any]
    more: dict[str, Any]
    reason: str
    log: str
    hits: list[Hit] = field(default_factory=list)


def run(
    origin: Origin,
    directory: Path,
    cases: str,
    settings: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
) -> Seen:
    """Run the spider to its end in a process of its own, below `directory`; may be called from any thread.

    Args:
        origin: of this side alone.
        directory: to be made; what lies beside it is for both sides.
        cases: a name in `tables`.
        settings: of the project.
        environment: variables beside this process' own; places in it are filled in.
    """
    directory.mkdir(parents=True)
    (directory.parent / "a.html").write_text("<p>a file</p>")
    places = places_of(origin, directory)
    own = {
        **COMMON,
        "DOWNLOADS_CASES": cases,
        "DOWNLOADS_PLACES": places,
        "DOWNLOADS_SEEN": str(directory / "seen.json"),
    }
    # No proxy of this machine's, no settings of somebody's.
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    process_environment = {
        **clean,
        "PYTHONPATH": str(REPOSITORY),
        "SCRAPY_SETTINGS_MODULE": "tests.integration.downloads.project.settings",
        "DOWNLOADS_SETTINGS": json.dumps({**own, **settings}),
        **fill(dict(environment or {}), places),
    }
    log = directory / "log.txt"
    with log.open("wb") as output:
        words = ["scrapy", "crawl", "conform"]
        process = warm.start(words, cwd=directory, env=process_environment, stdout=output, stderr=output)
    _wait(process)
    told = directory / "seen.json"
    assert told.exists(), log.read_text()
    return Seen(**json.loads(origin.neutral(told.read_text())), log=log.read_text(), hits=origin.take_hits())


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end; a run that hangs is asked to stop, so that its other rows can still be looked at."""
    for end in (process.terminate, process.kill, None):
        try:
            process.wait(RUN_S_MAX if end == process.terminate else STOP_S_MAX)
        except subprocess.TimeoutExpired:
            assert end is not None
            end()
        else:
            return


def places_of(origin: Origin, directory: Path) -> dict[str, str]:
    """The servers, and other ways to write where they are."""
    places = dict(origin.places)
    address = {name: place.partition("://")[2] for name, place in places.items()}
    return {
        **places,
        "plain-address": address["plain"],
        "proxy-address": address["proxy"],
        "plain-as-tls": f"https://{address['plain']}",
        "tls-as-plain": f"http://{address['tls']}",
        "capital": places["named"].replace("localhost", "LocalHost"),
        # One for both sides, so that what they report can be compared.
        "file": (directory.parent / "a.html").as_uri(),
    }
