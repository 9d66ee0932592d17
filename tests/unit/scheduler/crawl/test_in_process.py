"""What a node has in process is on record for whoever comes after its death."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.crawl.in_process import InProcess, read_in_process
from tests.unit.scheduler.records.test_held_urls import held_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "node.lock"


@pytest.fixture
def in_process(path: Path) -> Iterator[InProcess]:
    """One with room for four, open."""
    made = InProcess(2)
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    made.open(fd)
    yield made
    made.forget()
    os.close(fd)


def test_what_is_in_process_can_be_read_by_others(in_process: InProcess, path: Path) -> None:
    """By partition and number, and whether it was answered; what has ended is gone."""
    first, second, third = held_url(1), held_url(2, partition=65_535), held_url(3)
    for held in (first, second, third):
        in_process.start(held)
    in_process.record_answered(second)
    assert in_process.end(third)
    assert read_in_process(path) == {0: " 1f", 65_535: " 2a"}
    assert len(in_process) == 2


def test_parsed_page_counts_as_one_on_which_nobody_works(in_process: InProcess, path: Path) -> None:
    """The engine may keep it for a while; whoever kills the process then is not the page."""
    first, second = held_url(1), held_url(2)
    for held in (first, second):
        in_process.start(held)
        in_process.record_answered(held)
        in_process.record_running(held)
    assert read_in_process(path) == {0: " 2a 1a"}
    in_process.record_parsed(first)
    assert in_process.running is None, "the spider may work on any of them next"
    assert read_in_process(path) == {0: " 2a 1f"}
    assert in_process.end(first)
    in_process.record_parsed(first)
    assert read_in_process(path) == {0: " 2a"}


def test_pages_that_wait_for_their_turn_are_not_at_work(in_process: InProcess, path: Path) -> None:
    """Of those that arrived it is the latest, and those that the spider was given until it is done with them."""
    first, second, third = many = [held_url(seq) for seq in (1, 2, 3)]
    for held in many:
        in_process.start(held)
        in_process.record_answered(held)
    assert read_in_process(path) == {0: " 3a 2f 1f"}
    in_process.record_running(first)
    assert read_in_process(path) == {0: " 3a 2f 1a"}
    in_process.record_running(third)
    in_process.record_running(second)
    in_process.record_parsed(first)
    in_process.start(fourth := held_url(4))
    in_process.record_answered(fourth)
    assert read_in_process(path) == {0: " 4a 3a 2a 1f"}
    assert in_process.end(fourth)
    in_process.start(fifth := held_url(5))
    in_process.record_answered(second)
    assert read_in_process(path) == {0: " 5f 3a 2a 1f"}, "the slot of the last one that arrived is another's"
    assert in_process.end(fifth)


def test_largest_numbers_have_room(in_process: InProcess, path: Path) -> None:
    """The 33 bits that an order leaves a sequence number."""
    held = held_url((1 << 33) - 1, partition=65_535)
    in_process.start(held)
    in_process.record_answered(held)
    assert read_in_process(path) == {65_535: f" {(1 << 33) - 1}a"}


def test_node_that_stops_leaves_nothing(in_process: InProcess, path: Path) -> None:
    """Nor does it write any more; what it counts goes on."""
    in_process.start(held := held_url(1))
    in_process.forget()
    in_process.forget()
    in_process.start(held_url(2))
    in_process.record_answered(held)
    in_process.end(held)
    assert read_in_process(path) == {}
    assert len(in_process) == 1


def test_more_than_there_is_room_for_is_counted(in_process: InProcess, path: Path) -> None:
    """Slots are used again; without one a URL is not on record, and no other's is touched."""
    many = [held_url(seq) for seq in range(1, 7)]
    for held in many:
        in_process.start(held)
    assert read_in_process(path) == {0: " 4f 3f 2f 1f"}
    in_process.record_answered(many[5])
    for held in many:
        assert in_process.end(held)
    assert not in_process.end(many[0])
    assert (len(in_process), read_in_process(path)) == (0, {})
    in_process.start(many[5])
    assert read_in_process(path) == {0: " 6f"}


@pytest.mark.parametrize("data", [b"", b"bigcrawl in process 2\n".ljust(40), b"bigcrawl in process 1\n".ljust(33)])
def test_file_that_says_nothing_is_not_taken_for_empty(path: Path, data: bytes) -> None:
    """One of another version, or never written: then all that was taken counts."""
    path.write_bytes(data)
    assert read_in_process(path) is None
    assert read_in_process(path.with_name("none")) is None
