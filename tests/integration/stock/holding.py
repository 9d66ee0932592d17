"""Spiders whose requests hold more than plain data, and a middleware that adds to them what cannot be stored."""

from __future__ import annotations

import importlib.util
import threading
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

import attrs
import scrapy

from tests.integration.stock.spiders import Base

HAS_PYDANTIC = bool(importlib.util.find_spec("pydantic"))


class Handle:
    """As the page of a browser: it exists in one process only, and counts how often it is used."""

    def __init__(self):
        self.lock = threading.Lock()
        self.uses = 0


class HandleMiddleware:
    def process_request(self, request):
        request.meta.setdefault("handle", Handle()).uses += 1


class HandledSpider(Base):
    """Its requests are tried again and redirected with what the middleware added."""

    name = "handled"

    async def start(self):
        for origin, path in zip(self.others, ("/flaky/1/handled", "/flaky/9/handled"), strict=False):
            yield scrapy.Request(origin + path, errback=self.failed)
        for path in ("redirect/same", "redirect/cross", "redirect/chain", "refresh/page"):
            yield scrapy.Request(f"{self.site}/{path}", errback=self.failed)

    def parse(self, response):
        yield self.told(response, uses=response.meta["handle"].uses, retries=response.meta.get("retry_times"))

    def failed(self, failure):
        yield {"url": failure.request.url, "uses": failure.request.meta["handle"].uses}


class KeptSpider(Base):
    """It puts such things in itself, and gives callbacks that no other process finds."""

    name = "kept"

    async def start(self):
        yield scrapy.Request(f"{self.site}/page/1", meta={"handle": Handle()}, cb_kwargs={"found": threading.Lock()})
        yield scrapy.Request(f"{self.site}/page/2", self.shouting("lambda"))
        yield scrapy.Request(f"{self.others[1]}/flaky/1/kept", self.parse_flaky, meta={"handle": Handle()})

    def parse(self, response, found):
        yield self.told(response, held=response.meta["handle"].uses, is_locked=found.locked())
        meta = {"handle": Handle()}
        yield response.follow("/page/3", self.shouting("another"), meta=meta)

    def shouting(self, by):
        return lambda response: [{"url": response.url, "by": by.upper()}]

    def parse_flaky(self, response):
        yield self.told(response, held=response.meta["handle"].uses)


class RefusedSpider(Base):
    """Without a setting, such requests are refused, and their errback is told."""

    name = "refused"
    paths = ("/page/1",)

    def parse(self, response):
        yield self.told(response)
        if response.url.endswith("/1"):
            yield response.follow("/page/2", meta={"handle": Handle()}, errback=self.failed)


class Plain(scrapy.Item):
    name = scrapy.Field()


@dataclass
class Data:
    name: str


@attrs.define
class Attrs:
    name: str
    more: list[int] = attrs.field(factory=list)


if HAS_PYDANTIC:
    import pydantic

    class Model(pydantic.BaseModel):
        name: str
        price: float = 0.5


def shout(text):
    return text.upper()


class ValueSpider(Base):
    """Records of all kinds that Scrapy knows, paths, classes, functions and requests arrive as they were."""

    name = "values"

    async def start(self):
        later = scrapy.FormRequest(
            f"{self.site}/page/2", self.parse_later, formdata={"a": "1"}, method="GET", cb_kwargs={"x": 1}
        )
        meta = {
            "records": [Plain(name="item"), Data("data"), Attrs("attrs", [1])],
            "model": Model(name="model") if HAS_PYDANTIC else None,
            "paths": (Path("a/b"), PureWindowsPath("C:/x")),
            "named": [Data, shout],
            "later": later,
        }
        yield scrapy.Request(f"{self.site}/page/1", meta=meta)

    def parse(self, response):
        meta = response.meta
        held = {name: repr(meta[name]) for name in ("records", "model", "paths")}
        yield self.told(response, **held, said=meta["named"][1]("x"), of=meta["named"][0] is Data)
        yield meta["later"]

    def parse_later(self, response, x):
        yield self.told(response, x=x)


SPIDERS = {spider.name: spider for spider in (HandledSpider, KeptSpider, RefusedSpider, ValueSpider)}
