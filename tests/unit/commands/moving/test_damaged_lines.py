"""`scrapy frontier import` of files that are damaged, or were made by hand: a line is refused before it is sent."""

from __future__ import annotations

import asyncio
import base64
import json
from argparse import Namespace
from typing import TYPE_CHECKING, Any

import msgpack
import pytest

from bigcrawl.commands.moving.export import export
from bigcrawl.commands.moving.export_file import LINE_BYTES_MAX, read_lines
from bigcrawl.commands.moving.import_crawl import import_crawl
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import partition_keys
from tests.unit.scheduler.world import connected, make_config, queued, world

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bigcrawl.config import Config

Line = dict[str, Any]

URL = "http://a.example/page"


@pytest.fixture(scope="module")
def export_file(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> str:
    """A real export, in which one line is that of a URL."""
    tmp_path, name = tmp_path_factory.mktemp("exported"), "exported-lines"

    async def begin() -> None:
        async with world(tmp_path, name, redis_url) as w:
            node = await w.joined()
            node.offer(*queued(URL))
            await w.turn(node, 2)
            await node.departure.close()

    asyncio.run(begin())
    file = tmp_path / "export.jsonl"
    export(make_config(tmp_path, name, redis_url), [str(file)], Namespace())
    return file.read_text()


@pytest.fixture
def exported(export_file: str) -> list[Line]:
    """Its lines."""
    return [json.loads(line) for line in export_file.splitlines()]


def imported(tmp_path: Path, crawl_name: str, redis_url: str, lines: list[Line]) -> Config:
    """Import lines into a new crawl."""
    file = tmp_path / "import.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = make_config(tmp_path / "new", f"{crawl_name}-new", redis_url)
    import_crawl(config, [str(file)], Namespace())
    return config


def body_of(*fields: object) -> str:
    return base64.b64encode(msgpack.packb(fields)).decode()


ODD_FIELDS: dict[str, object] = {
    "host with a line end": {"host": "a.example\nb"},
    "host with a space": {"host": "a example"},
    "empty host": {"host": ""},
    "host that is no text": {"host": None},
    "host of 300 letters": {"host": "a" * 300},
    "host of another URL": {"host": "b.example"},
    "host that is not ASCII": {"host": "ä.example"},
    "flags of 2^63": {"flags": 2**63},
    "flags below 0": {"flags": -1},
    "flags beyond all integers": {"flags": 2**70},
    "flags that are no number": {"flags": "0"},
    "priority of 2^40": {"priority": 2**40},
    "priority that is no number": {"priority": None},
    "key that is no number": {"key": "page"},
    "key below 0": {"key": "-1"},
    "key of 17 digits": {"key": "1" + 16 * "0"},
    "another partition": {"partition": "other"},
    "partition that is a truth": {"partition": True},
    "partition below 0": {"partition": -1},
    "partition beyond all": {"partition": 4},
    "body of a file": {"body": body_of("file:///etc/passwd", 0, None)},
    "body of another host": {"body": body_of("http://b.example/", 0, None)},
    "body without a URL": {"body": body_of(None, 0, None)},
    "body without a depth": {"body": body_of(URL, "0", None)},
    "body with a list for a payload": {"body": body_of(URL, 0, [])},
    "body that is no list": {"body": base64.b64encode(msgpack.packb(7)).decode()},
    "body that is no msgpack": {"body": base64.b64encode(b"\xc1").decode()},
    "body that is not base64": {"body": "?"},
}


@pytest.mark.parametrize("name", ODD_FIELDS)
def test_a_url_with_an_odd_field_is_refused(
    name: str, exported: list[Line], tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """The error names the line, and nothing of it is sent."""
    at = next(at for at, line in enumerate(exported) if "url" in line)
    odd = dict(ODD_FIELDS[name])  # type: ignore[call-overload]
    if odd.get("partition") == "other":
        odd = {"partition": (exported[at]["partition"] + 1) % 4}
    exported[at] |= odd
    with pytest.raises(ConfigError, match=f"line {at + 1} of the file is damaged"):
        imported(tmp_path, crawl_name, redis_url, exported)
    assert asyncio.run(inboxes(f"{crawl_name}-new", redis_url)) == 0


async def inboxes(crawl: str, redis_url: str) -> int:
    async with connected(redis_url) as client:
        return sum([await client.command("XLEN", partition_keys(crawl, number).inbox) for number in range(4)])


def test_a_sound_file_is_taken(exported: list[Line], tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """All lines as they were written."""
    imported(tmp_path, crawl_name, redis_url, exported)
    assert asyncio.run(inboxes(f"{crawl_name}-new", redis_url)) > 0


def inserted(line: Line) -> Callable[[list[Line]], object]:
    return lambda lines: lines.insert(1, line)


DAMAGES: dict[str, Callable[[list[Line]], object]] = {
    "a line is missing": lambda lines: lines.pop(1),
    "a line is twice": lambda lines: lines.insert(1, lines[1]),
    "the first line is the last": lambda lines: lines[0].update({"end": {"lines": 0}}) or lines.pop(1),
    "no name of a field": inserted({"partition": 0}),
    "edges that are none": inserted({"edges": base64.b64encode(b"\xff").decode(), "partition": 0}),
    "revisits that are none": inserted({"revisits": base64.b64encode(b"\xff").decode(), "partition": 0}),
    "rows of no table": inserted({"table": "none", "keys": "", "partition": 0}),
    "rules that are no table": inserted({"rules": "blacklist", "fields": ["a.example"]}),
    "a rule that is no text": inserted({"rules": "budgets", "fields": {"a.example": {"budget": 1}}}),
    "an order for a speed": inserted({"rules": "speed", "fields": {"paused": "1"}}),
    "rules of a list": inserted({"rules": ["blacklist"], "fields": {}}),
    "suffixes that are not base64": lambda lines: lines[0]["record"].update(suffixes="?"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_one_line(
    name: str, exported: list[Line], tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """Whatever is in it, a user gets an error with a line, and no traceback."""
    DAMAGES[name](exported)
    with pytest.raises(ConfigError):
        imported(tmp_path, crawl_name, redis_url, exported)


def test_json_in_json_without_end_is_one_line(tmp_path: Path) -> None:
    """Python's parser gives up at some depth."""
    file = tmp_path / "deep.jsonl"
    file.write_bytes(b'{"bigcrawl":' + b"[" * (LINE_BYTES_MAX // 2))
    with pytest.raises(ConfigError, match="line 1 is not a JSON object"):
        next(read_lines(file))
