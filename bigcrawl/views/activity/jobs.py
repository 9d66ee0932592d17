from __future__ import annotations

import base64
import time
import urllib.request
from datetime import datetime
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlsplit

from bigcrawl.json_text import read_json
from bigcrawl.logs.plain import excerpt_of
from bigcrawl.redisdb.keys import KNOWN
from bigcrawl.redisdb.replies import pairs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl

LISTED_MAX: Final = 100
PROJECTS_MAX: Final = 20
TIMEOUT_S: Final = 2.0
ALL_S: Final = 5.0
BYTES_MAX: Final = 1 << 20
TEXT_MAX: Final = 200
_HANDLERS: Final = (
    urllib.request.HTTPHandler,
    urllib.request.HTTPSHandler,
    urllib.request.HTTPErrorProcessor,
    urllib.request.HTTPDefaultErrorHandler,
)
STATES: Final = ("running", "pending", "finished")


def read_jobs(config: Config) -> dict[str, Any]:
    """Return running, waiting and ended jobs, or in `error` why scrapyd does not answer within `ALL_S`."""
    url = config.dashboard.scrapyd
    if url is None:
        return {"scrapyd": None, "jobs": [], "error": None}
    server = _Scrapyd(url)
    jobs: list[dict[str, Any]] = []
    error = None
    try:
        jobs = list(server.jobs())
    except (OSError, HTTPException, ValueError, TypeError, LookupError, AttributeError) as failure:
        reason = getattr(failure, "reason", failure)
        error = excerpt_of(f"scrapyd at {server.shown_url} does not answer as it should: {reason}", TEXT_MAX)
    jobs.sort(key=lambda job: (STATES.index(job["state"]), -(job["end"] or job["start"] or 0.0)))
    return {"scrapyd": server.shown_url, "jobs": jobs[:LISTED_MAX], "error": error}


class _Scrapyd:
    def __init__(self, url: str) -> None:
        split = urlsplit(url)
        self.shown_url = f"{split.scheme}://{split.netloc.rpartition('@')[2]}{split.path.rstrip('/')}"
        self._headers = {"Accept": "application/json"}
        if split.username is not None:
            login = f"{unquote(split.username)}:{unquote(split.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        # Without proxies and redirects: the password is for the named server.
        self._opener = urllib.request.OpenerDirector()
        for handler in _HANDLERS:
            self._opener.add_handler(handler())
        self._until_s = time.monotonic() + ALL_S

    def jobs(self) -> Iterator[dict[str, Any]]:
        for project in self._ask("listprojects.json")["projects"][:PROJECTS_MAX]:
            found = self._ask(f"listjobs.json?project={quote(str(project), safe='')}")
            for state in STATES:
                for job in found.get(state, ())[-LISTED_MAX:]:
                    yield {
                        "project": excerpt_of(str(project), TEXT_MAX),
                        "spider": excerpt_of(str(job.get("spider", "")), TEXT_MAX),
                        "job": excerpt_of(str(job.get("id", "")), TEXT_MAX),
                        "state": state,
                        "start": _time_of(job.get("start_time")),
                        "end": _time_of(job.get("end_time")),
                    }

    def _ask(self, path: str) -> dict[str, Any]:
        timeout_s = min(TIMEOUT_S, self._until_s - time.monotonic())
        if timeout_s <= 0:
            raise TimeoutError("scrapyd answers too slowly")
        request = urllib.request.Request(f"{self.shown_url}/{path}", headers=self._headers)  # noqa: S310 - http, by config
        with self._opener.open(request, timeout=timeout_s) as answer:
            body = b""
            while len(body) <= BYTES_MAX and (part := answer.read1(BYTES_MAX)):
                body += part
                if time.monotonic() > self._until_s:
                    raise TimeoutError("scrapyd answers too slowly")
        if len(body) > BYTES_MAX:
            raise ValueError(f"its answer has more than {BYTES_MAX:,} bytes")
        found = read_json(body)
        if not isinstance(found, dict) or found.get("status") != "ok":
            raise ValueError("its answer is not that of a scrapyd")
        return found


def _time_of(text: object) -> float | None:
    """Return the Unix time of a local time of scrapyd's, which has no zone."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


SILENT_MS: Final = 60_000
"""A crawl that runs reports its figures every ten seconds."""


async def crawls_of(crawl: OpenedCrawl) -> dict[str, Any]:
    """Return the crawls of this Redis, the last to report first. Cost: one Redis command."""
    now_ms = crawl.client.now_ms()
    rows = []
    for name, text in pairs_of(await crawl.client.command("HGETALL", KNOWN)):
        try:
            rows.append(_row(name.decode("utf-8", "replace"), read_json(text), now_ms))
        except (ValueError, TypeError, KeyError):  # of another version, or damaged
            continue
    return {"crawls": sorted(rows, key=lambda row: -row["last_s"])[:LISTED_MAX]}


def _row(name: str, known: dict[str, Any], now_ms: int) -> dict[str, Any]:
    nodes = int(known["nodes"]) if now_ms - int(known["at_ms"]) < SILENT_MS else 0
    runs = "paused" if known["is_paused"] else "runs"
    return {
        "crawl": name,
        "spider": str(known["spider"]),
        "state": "finished" if known["is_finished"] else runs if nodes else "stopped",
        "nodes": nodes,
        "pages": int(known["pages"]),
        "waiting": int(known["waiting"]),
        "last_s": int(known["at_ms"]) / 1000,
    }
