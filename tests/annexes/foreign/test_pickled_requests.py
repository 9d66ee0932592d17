"""Pickles of others: plain requests are read, all else is an error, and nothing of it runs or costs much."""

from __future__ import annotations

import datetime
import json
import os
import pickle
from collections import OrderedDict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import FormRequest

from bigcrawl_foreign.pickled_requests import PickledRequests, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def requests() -> Iterator[PickledRequests]:
    with PickledRequests() as made:
        yield made


def tree_of(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value, value]
    return value


class Runs:
    """What an attacker would put into a queue."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self._path,)


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_request_is_read_as_it_was(requests: PickledRequests, protocol: int) -> None:
    """With all types that a stored request may hold."""
    meta = {
        "at": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        "set": {1, 2},
        "pair": (1, "x"),
        "cost": Decimal("1.5"),
        "none": None,
    }
    fields = FormRequest("http://a.example/", formdata={"a": "b"}, meta=meta).to_dict()
    assert requests.read(pickle.dumps(fields, protocol)) == fields
    assert requests.read(pickle.dumps({"a": OrderedDict(b=1)}, protocol)) == {"a": {"b": 1}}
    assert requests.read(json.dumps({"url": "http://a.example/"}).encode()) == {"url": "http://a.example/"}


def test_class_is_named_and_not_looked_up(requests: PickledRequests, tmp_path: Path) -> None:
    """Nothing of it runs, in whatever place it is."""
    for value in (Runs(str(tmp_path / "made")), {"meta": [Runs(str(tmp_path / "made"))]}):
        with pytest.raises(UnreadableError, match=r"it holds a posix.mkdir"):
            requests.read(pickle.dumps(value))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "entry",
    [
        *(b"", b"{", b"garbage", b"\x80\x04garbage", b"\x80\x04" + b"(" * 100_000, b"{" * 100_000, b"\x80\x04N."),
        *(pickle.dumps([1]), pickle.dumps("text"), pickle.dumps(tree_of(60)), pickle.dumps({"a": tree_of(60)})),
        b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b"x",  # a terabyte, it says
    ],
)
def test_bad_entry_is_an_error(requests: PickledRequests, entry: bytes) -> None:
    """And the next one is read."""
    with pytest.raises(UnreadableError):
        requests.read(entry)
    assert requests.read(pickle.dumps({"a": 1})) == {"a": 1}


def test_entry_that_takes_too_long_ends_the_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The reader goes on with another one."""
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import sys\n"
        "from bigcrawl_foreign import unpickling\n"
        "unpickling.ENTRY_SECONDS = 1\n"
        "whole = unpickling.read_entry\n"
        "def read_entry(data):\n"
        "    while b'slow' in data: pass\n"
        "    return whole(data)\n"
        "unpickling.read_entry = read_entry\n"
        "unpickling.serve_entries(sys.stdin.buffer, sys.stdout.buffer)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path) + os.pathsep + os.environ.get("PYTHONPATH", ""))
    monkeypatch.setattr("bigcrawl_foreign.pickled_requests._MODULE", "slow")
    with PickledRequests() as requests:
        with pytest.raises(UnreadableError, match="the process that read it was killed"):
            requests.read(pickle.dumps({"a": "slow"}))
        assert requests.read(pickle.dumps({"a": 1})) == {"a": 1}
