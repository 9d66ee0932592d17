"""`scrapy frontier rejected`: what could not be read is said, holds up the end, and is taken in again or dropped."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.commands.looking.explain import explanation_text
from bigcrawl.commands.looking.status import status_text
from bigcrawl.commands.repairing.dead import rejected
from bigcrawl.redisdb import scripts
from bigcrawl.scheduler.node.loops import watch
from bigcrawl.scheduler.records.outcomes import AGAIN, pack_outcomes
from bigcrawl.scheduler.records.queued_url import BATCH_VERSION, encode_batch
from bigcrawl.views.damage import damage_of
from bigcrawl.views.status import status_of
from tests.unit.commands.repairing.test_requeue import explained as explained_now
from tests.unit.scheduler.world import queued, viewed, world

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.commands.result import Result
    from bigcrawl.scheduler.node.node import Node
    from tests.unit.scheduler.world import World

URLS = ["http://a.example/1", "http://a.example/2"]


async def run(w: World, *, retry: bool = False, drop: bool = False) -> Result:
    """The command, as another process: in a thread, with a loop of its own."""
    return await asyncio.to_thread(rejected, w.config, (), argparse.Namespace(retry=retry, drop=drop))


async def is_finished(w: World, node: Node, turns: int) -> bool:
    await w.turn(node, turns)
    return node.progress.is_finished


def files_of(w: World) -> list[Path]:
    return sorted(w.config.crawl.crawl_dir.glob("p*/rejected/*"))


async def with_one_rejected(w: World) -> tuple[Node, Path]:
    """A crawl whose only batch is of a version that nobody here reads."""
    node = await w.joined()
    batch = encode_batch(queued(*URLS))
    later = bytes((BATCH_VERSION + 1,)) + batch[1:]
    await w.client.run([scripts.append_batch(w.keys(node, "a.example"), "n", 1, 1, later, len(URLS))])
    await w.turn(node, 4)
    [file] = files_of(w)
    assert file.read_bytes() == later
    return node, file


def test_batch_that_cannot_be_read_is_an_error_everywhere(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Status counts it and says where it lies, verify names it, and the list says why."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            _, file = await with_one_rejected(w)
            found = await viewed(w.config, status_of)
            assert found["rejected"] == {"entries": 1, "below": [str(file.parent)]}
            shown = " ".join(status_text(found).split())
            assert f"1 inbox entries could not be read; they lie below {file.parent}" in shown
            assert "scrapy frontier rejected" in shown
            [line] = damage_of(w.config)
            assert str(file) in line
            assert f"batch format version is {BATCH_VERSION + 1}" in line
            explained = explanation_text(await explained_now(w, URLS[0]))
            assert "1 inbox entries of its partition could not be read: it might be in one" in explained
            listed = await run(w)
            assert listed.status == 1
            assert str(file) in listed.text

    asyncio.run(scenario())


def test_crawl_with_a_batch_that_cannot_be_read_is_not_finished(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When nothing else is left it ends with an error that says what to do."""
    monkeypatch.setattr(watch, "STUCK_LOOKS", 3)

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node, _ = await with_one_rejected(w)
            assert not await is_finished(w, node, 6)
            assert not (await viewed(w.config, status_of))["finished"]
            assert "1 inbox entries could not be read" in str(w.fatal[0])
            assert "scrapy frontier rejected" in str(w.fatal[0])

    asyncio.run(scenario())


def test_batch_that_can_be_read_again_is_taken_in(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Its URLs are fetched, and the crawl comes to its end; until it is mended nothing is changed."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node, file = await with_one_rejected(w)
            refused = await run(w, retry=True)
            assert (refused.status, files_of(w)) == (1, [file])

            file.write_bytes(bytes((BATCH_VERSION,)) + file.read_bytes()[1:])
            assert "can be read" in (await run(w)).text
            taken = await run(w, retry=True)
            assert taken.status == 0, taken.text
            assert (
                files_of(w),
                (await viewed(w.config, status_of))["rejected"]["entries"],
            ) == ([], 0)
            fetched = []
            while held := await w.take(node):
                for one in held:
                    w.end(node, one)
                fetched += [one.url for one in held]
            assert fetched == URLS
            assert await is_finished(w, node, 6)
            found = await viewed(w.config, status_of)
            assert (found["rejected"]["entries"], found["urls"]["inbox"]) == (0, 0)
            assert list(damage_of(w.config)) == []

    asyncio.run(scenario())


def test_batch_that_is_dropped_holds_up_nothing_more(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The file is gone, and the crawl is finished without its URLs."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node, file = await with_one_rejected(w)
            file.with_suffix(".copy").write_bytes(b"somebody's")
            assert not await is_finished(w, node, 3)
            dropped = await run(w, drop=True)
            assert (dropped.status, files_of(w)) == (0, [])
            assert await is_finished(w, node, 6)
            assert (await run(w)).text == "there are no rejected entries"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("field_name", "mended"),
    [("outcomes", pack_outcomes([(7, AGAIN, 0)])), ("edges", bytes(16)), ("forgotten", bytes(8))],
)
def test_other_fields_of_an_entry_are_taken_in_as_such(
    tmp_path: Path, crawl_name: str, redis_url: str, field_name: str, mended: bytes
) -> None:
    """Each goes back to the inbox in the field that it came in."""

    async def scenario() -> None:
        async with world(tmp_path, crawl_name, redis_url) as w:
            node = await w.joined()
            keys = w.keys(node, "a.example")
            await w.client.command("XADD", keys.inbox, "*", field_name[0], b"odd")
            await w.turn(node, 4)
            [file] = files_of(w)
            assert file.name.endswith(f"-{field_name}")
            file.write_bytes(mended)
            assert (await run(w, retry=True)).status == 0
            rows: list[Any] = await w.client.command("XREVRANGE", keys.inbox, "+", "-", "COUNT", 1)
            assert rows[0][1] == [field_name[:1].encode(), mended]
            await w.turn(node, 4)
            assert files_of(w) == []

    asyncio.run(scenario())
