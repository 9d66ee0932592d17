"""`scrapy frontier add`: URLs by hand and from programs."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.commands.steering.add import LINE_CHARS_MAX, add
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.adapter.request_codec import decode_body
from tests.unit.scheduler.world import queued, world

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.commands.result import Result
    from bigcrawl.scheduler.node.node import Node
    from tests.unit.scheduler.world import World


async def added(w: World, *words: str, **options: Any) -> Result:
    """The command, as another process: in a thread, with a loop of its own."""
    return await asyncio.to_thread(add, w.config, words, argparse.Namespace(**options))


async def taken(w: World, node: Node) -> list[tuple[str, int, int, Any]]:
    """URL, priority, depth and payload of all that can be fetched; it ends well."""
    found = []
    while held := await w.take(node):
        for one in held:
            url, depth, payload = decode_body(one.fields.body)
            found.append((url, one.fields.priority, depth, payload))
            w.end(node, one, "status:200")
    return sorted(found, key=str)


def test_urls_files_and_standard_input(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are queued on a running crawl, in any spelling; those met before stay as they are."""
    file = tmp_path / "urls.txt"
    file.write_text("\ufeff# seeds\n\nhttp://b.example/#part\nHTTP://C.example\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"http://d.example/\r\n")))

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            node.offer(queued("http://b.example/")[0])
            assert [url for url, *_ in await taken(w, node)] == ["http://b.example/"]
            done = await added(w, "http://a.example/x", str(file), "-", priority=3)
            assert (done.status, done.data["sent"], done.data["bad"]) == (0, 4, [])
            assert [row[:3] for row in await taken(w, node)] == [
                (f"http://{host}.example/{rest}", 3, 0) for host, rest in (("a", "x"), ("c", ""), ("d", ""))
            ]

    asyncio.run(scenario())


def test_lines_of_a_program(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A JSON object has what a Request has; `dont_filter` queues a URL that was met."""
    rows = [
        {"url": "http://a.example/", "priority": -7, "depth": 4, "meta": {"topic": "x"}, "callback": "parse_item"},
        {"url": "http://b.example/", "cb_kwargs": {"n": 1}, "errback": "failed"},
        {"url": "http://met.example/", "dont_filter": True},
        {"url": "http://met.example/2", "dont_filter": False},
    ]
    (tmp_path / "urls.jl").write_text("\n".join(map(json.dumps, rows)))

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            for url in queued("http://met.example/", "http://met.example/2"):
                node.offer(url)
            assert len(await taken(w, node)) == 2
            done = await added(w, str(tmp_path / "urls.jl"), callback="parse_other", priority=1)
            assert (done.status, done.data["sent"]) == (0, 4)
            found = {url: (priority, depth, payload) for url, priority, depth, payload in await taken(w, node)}
            verbatim = {"verbatim_url": True}
            assert found == {
                "http://a.example/": (
                    -7,
                    4,
                    {"callback": "parse_item", "meta": {"topic": "x", **verbatim}, "priority": -7},
                ),
                "http://b.example/": (
                    1,
                    0,
                    {
                        "callback": "parse_other",
                        "errback": "failed",
                        "cb_kwargs": {"n": 1},
                        "meta": verbatim,
                        "priority": 1,
                    },
                ),
                "http://met.example/": (1, 0, {"callback": "parse_other", "meta": verbatim, "priority": 1}),
            }

    asyncio.run(scenario())


BAD = {
    "ftp://a.example/": "must begin with http",
    "no url": "must begin with http",
    "{": "it is no JSON object",
    "{}": "it has no url",
    '{"url": 5}': "it has no url",
    '{"url": "http://a.example/", "prio": 3}': "unknown: prio; it may have url, depth",
    '{"url": "http://a.example/", "priority": "high"}': "priority is 'high'",
    '{"url": "http://a.example/", "meta": 5}': "meta is 5: it must be a dict",
    '{"url": "http://a.example/", "depth": [1]}': "it must be a whole number",
    '{"url": "http://a.example/", "callback": 5}': "callback must be the name of a method",
}


def test_bad_lines_are_told_and_the_others_queued(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """By file and line; the first few in the text, all for programs."""
    (tmp_path / "urls").write_text("\n".join([*BAD, "http://good.example/"]))

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            done = await added(w, str(tmp_path / "urls"))
            assert (done.status, done.data["sent"], len(done.data["bad"])) == (1, 1, len(BAD))
            for number, (told, reason) in enumerate(zip(done.data["bad"], BAD.values(), strict=True), 1):
                assert told["where"] == f"{tmp_path / 'urls'}, line {number}"
                assert reason in told["reason"]
            assert done.text.count("not added: ") == 5
            assert done.text.endswith(f"and {len(BAD) - 5} more")
            assert [url for url, *_ in await taken(w, node)] == ["http://good.example/"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read as a file"), (b"x" * (LINE_CHARS_MAX + 1), "it is not a list of URLs")],
)
def test_files_that_are_none(tmp_path: Path, crawl_name: str, redis_url: str, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / "urls").write_bytes(content)

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            await w.joined()
            with pytest.raises(ConfigError, match=said):
                await added(w, str(tmp_path / "urls"))

    asyncio.run(scenario())


def test_finished_crawl_has_work_again(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The announcement of its end is taken back; the next start fetches the URL."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            await w.joined()
            key = f"bigcrawl:{{{crawl_name}}}:crawl"
            await w.client.command("HSET", key, "finished", "x")
            words: Sequence[str] = ["http://a.example/"]
            assert (await added(w, *words)).status == 0
            assert await w.client.command("HGET", key, "finished") is None

    asyncio.run(scenario())
