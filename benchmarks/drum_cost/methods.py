"""The methods that are measured: how each is made on a scale, and what the paper's formulas say of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from benchmarks.drum_cost.mercator import MercatorB
from benchmarks.drum_cost.models import drum_alpha, mercator_alpha, polybot_alpha
from benchmarks.drum_cost.ours import OurDrum
from benchmarks.drum_cost.paper_drum import PaperDrum
from benchmarks.drum_cost.polybot import PolyBot
from benchmarks.drum_cost.tiered import TieredRuns
from bigcrawl_drum.drum import MEMORY_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.drum_cost.method import Method
    from benchmarks.drum_cost.scale import Scale
    from bigcrawl.drum.files import Files


@dataclass(frozen=True, slots=True)
class Entry:
    """One method of the tables.

    Attributes:
        title: its column's head.
        make: the method, given a directory of its own, its files and a scale.
        alpha: the paper's formula, given the method after a run, a scale and the URLs offered.
    """

    title: str
    make: Callable[[Path, Files, Scale], Method]
    alpha: Callable[[Method, Scale, float], float]


def _mercator_alpha(_: Method, scale: Scale, offered: float) -> float:
    return mercator_alpha(scale.load, offered, scale.memory_bytes)


def _polybot_alpha(method: Method, scale: Scale, offered: float) -> float:
    # Its bq is the file's own: the paper's 5.5 holds for no other URLs than the paper's.
    assert isinstance(method, PolyBot)
    load = replace(scale.load, compressed_bytes=method.compressed_bytes)
    return polybot_alpha(load, offered, scale.memory_bytes)


def _drum_alpha(_: Method, scale: Scale, offered: float) -> float:
    return drum_alpha(scale.load, offered, scale.memory_bytes, scale.disk_bytes)


def _paper_drum(directory: Path, files: Files, scale: Scale) -> PaperDrum:
    return PaperDrum(directory, files, scale.memory_bytes, scale.disk_bytes, scale.buckets, scale.buffer_bytes)


def _tiered(directory: Path, files: Files, scale: Scale) -> PaperDrum:
    def runs(files: Files, path: Path) -> TieredRuns:
        return TieredRuns(files, path, scale.fresh_max)

    return PaperDrum(directory, files, scale.memory_bytes, scale.disk_bytes, scale.buckets, scale.buffer_bytes, runs)


def _ours(directory: Path, files: Files, scale: Scale) -> OurDrum:
    # Where the others have a gigabyte, a Drum has what it takes by default.
    memory_bytes = min(scale.memory_bytes, MEMORY_BYTES)
    return OurDrum(directory, files, memory_bytes, scale.disk_bytes, scale.buckets, scale.fresh_max)


METHODS: Final = {
    "mercator": Entry("Mercator-B", lambda at, files, scale: MercatorB(at, files, scale.memory_bytes), _mercator_alpha),
    "polybot": Entry("PolyBot", lambda at, files, scale: PolyBot(at, files, scale.memory_bytes), _polybot_alpha),
    "drum": Entry("DRUM", _paper_drum, _drum_alpha),
    "tiered": Entry("DRUM, tiered runs", _tiered, _drum_alpha),
    "ours": Entry("bigcrawl", _ours, _drum_alpha),
}
