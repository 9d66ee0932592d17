"""Large files are written in portions with rests in between, and at once when there is haste."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.scheduler.partition import file_work as unhurried
from bigcrawl.scheduler.partition.file_work import LOOK_S, PORTION_S, RESTS, ThrottledFiles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Time:
    """The module's clocks: CPU is what chunks cost, and besides only sleeping takes time."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.slept: list[float] = []

    def thread_time(self) -> float:
        return self.cpu_s

    def monotonic(self) -> float:
        return self.cpu_s + sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def chunks(self, count: int, cost_s: float) -> Iterator[bytes]:
        for number in range(count):
            self.cpu_s += cost_s
            yield b"%04d" % number


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(unhurried, "time", time)
    return time


def test_rests_are_in_proportion_to_the_work(tmp_path: Path, clock: Time) -> None:
    """The thread has one part in six of the time, however the work is cut into chunks."""
    ThrottledFiles(lambda: True).write_new(tmp_path / "run", clock.chunks(100, PORTION_S / 4))
    assert (tmp_path / "run").read_bytes() == b"".join(b"%04d" % number for number in range(100))
    assert sum(clock.slept) == pytest.approx(RESTS * clock.cpu_s, abs=RESTS * 2 * PORTION_S)  # behind the last, none
    assert max(clock.slept) <= LOOK_S


def test_small_files_are_written_at_once(tmp_path: Path, clock: Time) -> None:
    """Less than a portion: nobody is asked, nothing waits."""

    def may_rest() -> bool:
        raise AssertionError

    ThrottledFiles(may_rest).write_new(tmp_path / "run", clock.chunks(3, PORTION_S / 4))
    assert (tmp_path / "run").read_bytes() == b"000000010002"
    assert not clock.slept


def test_haste_ends_a_rest(tmp_path: Path, clock: Time) -> None:
    """A node that runs out of URLs, or stops, waits for a look at most."""
    ThrottledFiles(lambda: len(clock.slept) < 2).write_new(tmp_path / "run", clock.chunks(10, 10 * PORTION_S))
    assert (tmp_path / "run").stat().st_size == 40
    assert clock.slept == [LOOK_S, LOOK_S]
