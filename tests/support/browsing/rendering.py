"""Crawls of pages that scripts write, and the browsers of a crawl."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl_rendering.processes import Process, processes_of
from tests.support.servers.scripted_web import NETWORK, TRACKER

if TYPE_CHECKING:
    from tests.support.servers.scripted_web import ScriptedWeb

AGENT: Final = "ExampleBot/1.0 (+http://a.example/bot)"
DELAY_S: Final = 0.2
PATIENT: Final = {"BIGCRAWL_RENDER_SECONDS": 600}
"""Gives a page on a busy machine the time to show all that it has: one that is cut is taken as it is."""


def rendering(web: ScriptedWeb, **more: Any) -> dict[str, Any]:
    """Settings with which only the web's own addresses may be asked, and its tracker is blocked."""
    tracker = web.bases[TRACKER].removeprefix("http://").partition(":")[0]
    return {
        "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": None,
        "BIGCRAWL_ALLOW_ADDRESSES": NETWORK,
        "BIGCRAWL_HOST_DELAY": DELAY_S,
        "BIGCRAWL_RENDER": "auto",
        "BIGCRAWL_RENDER_BLOCK": f'["{tracker}"]',
        "USER_AGENT": AGENT,
        **more,
    }


class RunningBrowser(NamedTuple):
    mark: str
    processes: list[Process]


def browsers_of(pid: int) -> list[RunningBrowser]:
    """Return the browsers below a process."""
    found = [RunningBrowser(mark, processes_of(mark)) for mark in _marks_below(pid)]
    return [each for each in found if each.processes]


def _marks_below(pid: int) -> set[str]:
    parents: dict[str, str] = {}
    marked: dict[str, str] = {}
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        try:
            parents[path.name] = (path / "stat").read_text().rpartition(")")[2].split()[1]
            words = (path / "cmdline").read_text().split("\0")
        except OSError:
            continue
        marks = [word for word in words if word.startswith("--bigcrawl-browser=")]
        if marks:
            marked[path.name] = marks[0]
    return {mark for name, mark in marked.items() if str(pid) in _line_of(name, parents)}


def _line_of(name: str, parents: dict[str, str]) -> set[str]:
    line = set()
    while name in parents and name not in line:
        line.add(name)
        name = parents[name]
    return line
