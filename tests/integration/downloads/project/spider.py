"""The spider of both sides: makes the requests of the tables and writes down what it is given."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider, signals

from tests.integration.downloads import tables
from tests.integration.downloads.case import Case, fill

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure

BODY_BYTES_MAX = 2000


class ConformSpider(Spider):
    """`DOWNLOADS_CASES` names its rows, `DOWNLOADS_PLACES` the servers; what it saw goes to `DOWNLOADS_SEEN`."""

    name = "conform"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.records: dict[str, list[dict[str, Any]]] = {}

    async def start(self):
        self.places: dict[str, str] = self.settings["DOWNLOADS_PLACES"]
        only = self.settings.get("DOWNLOADS_ONLY")
        table: tuple[Case, ...] = getattr(tables, self.settings["DOWNLOADS_CASES"])
        self.cases = {case.name: case for case in table if not only or case.name in only}
        self.crawler.signals.connect(self.scraped, signals.item_scraped)
        for case in self.cases.values():
            if not case.by_engine:
                yield self._request(case, 0)
        if any(case.by_engine for case in self.cases.values()):
            yield Request(f"{self.places['plain']}/door/", callback=self.at_the_door)

    async def at_the_door(self, response: Response):
        """Make the requests that meet no scheduler."""
        await asyncio.gather(*(self._by_engine(case) for case in self.cases.values() if case.by_engine))

    def seen(self, response: Response, **_: object):
        assert response.request is not None
        self.note(_of_response(response), response.request)
        case = self.cases[response.meta["case"]]
        if case.files:
            yield {"case": case.name, "file_urls": fill(list(case.files), self.places)}
        yield from self._next(response.request)

    def scraped(self, item: dict[str, Any]) -> None:
        # Where a file was stored is a digest of its URL, port and all.
        files = [{**file, "path": bool(file["path"])} for file in item["files"]]
        self.records[item["case"]].append({"files": files})

    def failed(self, failure: Failure):
        assert failure.value is not None
        request: Request = failure.request  # type: ignore[attr-defined]
        self.note(_of_error(failure.value), request)
        yield from self._next(request)

    def note(self, record: dict[str, Any], request: Request) -> None:
        # The request as the callback sees it, with what the middlewares made of it.
        self.records.setdefault(request.meta["case"], []).append({**record, **_of_request(request)})

    async def _by_engine(self, case: Case) -> None:
        request = self._request(case, 0)
        try:
            response = await self.crawler.engine.download_async(request)
        except Exception as error:  # noqa: BLE001 - the record says which
            self.note(_of_error(error), request)
        else:
            assert response.request is not None
            self.note(_of_response(response), response.request)

    def _request(self, case: Case, number: int) -> Request:
        step = case.steps[number]
        keywords = fill(dict(step.request), self.places)
        keywords["meta"] = {**keywords.get("meta", {}), "case": case.name, "step": number}
        return Request(fill(step.url, self.places), callback=self.seen, errback=self.failed, **keywords)

    def _next(self, request: Request):
        case, number = self.cases[request.meta["case"]], request.meta["step"] + 1
        if number < len(case.steps):
            yield self._request(case, number)

    def closed(self, reason: str) -> None:
        assert self.crawler.stats is not None
        seen = {
            "reason": reason,
            "records": self.records,
            "stats": self.crawler.stats.get_stats(),
            "more": getattr(self, "more", {}),
        }
        Path(self.settings["DOWNLOADS_SEEN"]).write_text(json.dumps(seen, default=_to_text))


def _to_text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else repr(value)


def _body(body: bytes) -> str:
    """The body, or of a large one its length and digest."""
    if len(body) > BODY_BYTES_MAX:
        return f"{len(body)} bytes, {hashlib.sha256(body).hexdigest()}"
    return body.decode("latin-1")


def _lists(headers: Any) -> dict[str, list[str]]:
    return {name.decode("latin-1"): [_to_text(value) for value in headers.getlist(name)] for name in sorted(headers)}


def _of_response(response: Response) -> dict[str, Any]:
    return {
        "url": response.url,
        "status": response.status,
        "class": type(response).__name__,
        "headers": _lists(response.headers),
        "body": _body(response.body),
        "encoding": getattr(response, "encoding", None),
        "flags": response.flags,
        "ip_address": str(response.ip_address),
        "protocol": response.protocol,
        "has_certificate": response.certificate is not None,
    }


def _of_error(error: BaseException) -> dict[str, Any]:
    response = getattr(error, "response", None)
    kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__]
    return {"error": kinds[0], "with": _of_response(response) if response is not None else None}


def _of_request(request: Request) -> dict[str, Any]:
    meta = dict(request.meta)
    if "download_latency" in meta:
        meta["download_latency"] = isinstance(meta["download_latency"], float)
    return {
        "requested": request.url,
        "method": request.method,
        "sent_body": _body(request.body),
        "sent_headers": _lists(request.headers),
        "meta": meta,
        "cb_kwargs": request.cb_kwargs,
        "request_flags": request.flags,
        "priority": request.priority,
        "dont_filter": request.dont_filter,
    }
