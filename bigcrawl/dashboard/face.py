"""The dashboard's requests and answers.

    GET  /                  the page and its files, without data of the crawl
    GET  /api/access        the rights of the given token
    GET  /api/<action>      the output of `scrapy frontier <action> --json`, see `actions.LOOKS`
    POST /api/<action>      a change, see `actions.CHANGES`

Errors are `{"error": "one line"}`. Bounded are headers (16 KB, by Twisted), bodies (`BODY_MAX`), connections and their
times (`bigcrawl.serving.sites`), and jobs that wait for a worker.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, Final

from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from bigcrawl.dashboard.access import AccessRules, HttpQuestion
from bigcrawl.dashboard.actions import CHANGES, LOOKS, change_of, read_action_of, run_action
from bigcrawl.dashboard.files import CONTENT_SECURITY_POLICY, PAGE, page_files
from bigcrawl.dashboard.kept import KeptCrawl
from bigcrawl.dashboard.worker import JobAnswer, JobThread
from bigcrawl.exceptions import BigcrawlError, CorruptionError, TransientStoreError
from bigcrawl.serving.sites import Listener, QuietSite
from bigcrawl.views.opened_crawl import keeping_open

if TYPE_CHECKING:
    from bigcrawl.config import Config
    from bigcrawl.dashboard.actions import Act, ActionCall

logger = logging.getLogger(__name__)

BODY_MAX: Final = 65_536
QUERY_MAX: Final = 8_192
API: Final = "/api/"

_HEADERS: Final = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class DashboardRequest(Request):
    """A request whose body stays in memory, up to `BODY_MAX`."""

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        """Never open a file for a body, whatever its declared length."""
        self._left = BODY_MAX
        super().gotLength(0)  # type: ignore[no-untyped-call]

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """Append to the body, or close the connection if it is too long."""
        is_over = self._left < 0
        self._left -= len(data)
        if self._left >= 0:
            super().handleContentChunk(data)  # type: ignore[no-untyped-call]
        elif not is_over:
            channel: Any = self.channel
            channel.transport.write(b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n\r\n")
            channel.loseConnection()

    def process(self) -> None:
        if self._left >= 0:
            super().process()  # type: ignore[no-untyped-call]


class DashboardSite(QuietSite):
    """The dashboard of one crawl: create, `start`, listen, `stop`."""

    def __init__(self, config: Config, act: Act) -> None:
        """Serve with a `config` that has the URL of the crawl's Redis, even if embedded; `act` runs actions."""
        self._face = _DashboardResource(config, act)
        super().__init__(self._face)
        self.requestFactory = DashboardRequest

    def start(self) -> None:
        self._face.start()

    async def stop(self) -> None:
        await self._face.stop()


def listener_of(config: Config) -> Listener:
    where = config.dashboard
    return Listener("dashboard", "BIGCRAWL_DASHBOARD_PORT", where.address, where.ports, "/")


class _DashboardResource(Resource):
    isLeaf = True  # noqa: N815 - Twisted's name

    def __init__(self, config: Config, act: Act) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._config = config
        self._act = act
        self._access = AccessRules(config.dashboard)
        self._files = page_files()
        # Two workers, so that a hung disk blocks no answer that needs only Redis.
        self._quick, self._slow = (
            JobThread("bigcrawl-dashboard", KeptCrawl(config).in_use()),
            JobThread("bigcrawl-dashboard-files", KeptCrawl(config).in_use()),
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_failed = False

    def start(self) -> None:
        self._quick.start()
        self._slow.start()

    async def stop(self) -> None:
        await asyncio.gather(self._quick.stop(), self._slow.stop())

    def render(self, request: Any) -> bytes | int:
        for name, value in _HEADERS.items():
            request.setHeader(name, value)
        asked = _question_of(request)
        path = request.path.decode("latin-1")
        is_api, action = path.startswith(API), path.removeprefix(API)
        if asked.method not in ("GET", "POST"):
            request.setHeader("allow", "GET, POST")
            return _write_error(request, 405, f"the method {asked.method[:20]} is not supported; use GET or POST")
        if (refusal := self._access.refusal(asked)) is not None:
            return _write_error(request, *refusal)
        if not is_api:
            return self._render_file(request, asked.method, path)
        if action == "access":
            return _write_answer(request, JobAnswer(200, json.dumps(self._permissions(asked)).encode()))
        if action not in (LOOKS if asked.method == "GET" else CHANGES):
            return _write_error(request, 404, _unknown_action_text(action, asked.method))
        if len(request.uri) > QUERY_MAX:
            return _write_error(request, 414, f"the URL is longer than {QUERY_MAX:,} bytes")
        try:
            call = (
                change_of(action, request.content.read())
                if asked.method == "POST"
                else _read_action_call(action, request)
            )
        except BigcrawlError as error:
            return _write_error(request, 400, str(error))
        self._start_answer(request, self._answer_change(call) if asked.method == "POST" else self._answer_query(call))
        return NOT_DONE_YET

    def _permissions(self, asked: HttpQuestion) -> dict[str, Any]:
        has_token, config = self._access.has_token(asked.authorization), self._config.dashboard
        return {
            "may_look": has_token or not config.is_guarded,
            "may_change": has_token,
            "has_token": config.token is not None,
        }

    def _render_file(self, request: Any, method: str, path: str) -> bytes:
        found = self._files.get("/" + PAGE if path == "/" else path)
        if found is None or method != "GET":
            return _write_error(request, 404, "there is no such page; the dashboard is at /")
        request.setHeader("content-type", found.content_type)
        return found.body

    async def _answer_query(self, call: ActionCall) -> JobAnswer:
        look = LOOKS[call.name]
        worker = self._slow if look.reads_files else self._quick
        return await worker.run_cached(call, lambda: self._run_action(call), look.kept_s)

    async def _answer_change(self, call: ActionCall) -> JobAnswer:
        worker = self._slow if call.name in LOOKS and LOOKS[call.name].reads_files else self._quick
        answer = await worker.run_change(lambda: self._run_change(call))
        self._quick.clear_cache()
        self._slow.clear_cache()
        # The words are not logged, because they may be long; `scrapy frontier` shows the orders in force.
        logger.info("dashboard: %(action)s, status %(status)d", {"action": call.name, "status": answer.status})
        return answer

    def _run_change(self, call: ActionCall) -> JobAnswer:
        with keeping_open(None):
            return self._run_action(call)

    def _run_action(self, call: ActionCall) -> JobAnswer:
        try:
            return JobAnswer(200, json.dumps(run_action(self._config, call, self._act)).encode())
        except TransientStoreError as error:
            return _error_answer(503, str(error))
        except CorruptionError as error:
            return _error_answer(500, str(error))
        except BigcrawlError as error:
            return _error_answer(400, str(error))
        except Exception:
            if not self._has_failed:
                logger.exception("the dashboard could not run %(action)s; this is logged once", {"action": call.name})
            self._has_failed = True
            return _error_answer(500, f"{call.name} failed; the log of the node says why")

    def _start_answer(self, request: Any, answering: Any) -> None:
        task = asyncio.get_running_loop().create_task(_send_answer(request, answering))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _send_answer(request: Any, answering: Any) -> None:
    is_gone: list[object] = []
    request.notifyFinish().addBoth(is_gone.append)
    answer = await answering
    if not is_gone:
        request.write(_write_answer(request, answer))
        request.finish()


def _question_of(request: Any) -> HttpQuestion:
    def header(name: str) -> str:
        return request.getHeader(name) or ""

    return HttpQuestion(
        request.method.decode("latin-1"),
        request.path.startswith(API.encode()) and request.path != b"/api/access",
        header("host"),
        header("origin"),
        header("content-type"),
        header("sec-fetch-site"),
        header("authorization"),
    )


def _read_action_call(action: str, request: Any) -> ActionCall:
    query = {
        name.decode(errors="replace"): [value.decode(errors="replace") for value in values]
        for name, values in request.args.items()
    }
    return read_action_of(action, query)


def _unknown_action_text(action: str, method: str) -> str:
    known = ", ".join(LOOKS if method == "GET" else CHANGES)
    return f"{method} knows no action {action[:40]!r}; there are: {known}"


def _error_answer(status: int, text: str) -> JobAnswer:
    return JobAnswer(status, json.dumps({"error": text}).encode())


def _write_error(request: Any, status: int, text: str) -> bytes:
    return _write_answer(request, _error_answer(status, text))


def _write_answer(request: Any, answer: JobAnswer) -> bytes:
    request.setResponseCode(answer.status)
    request.setHeader("content-type", "application/json")
    if answer.status == 401:
        request.setHeader("www-authenticate", 'Bearer realm="bigcrawl"')
    return answer.body
