"""One run: a stream of URLs through one method, every verdict checked, every byte counted."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from benchmarks.drum_cost.counting import CountingFiles, Moved
from benchmarks.drum_cost.methods import METHODS
from benchmarks.drum_cost.urls import TEXT_BYTES, digest_of, offered
from bigcrawl.drum.format import KEY_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.drum_cost.scale import Scale

# What the kinds of file are parts of: the terms of alpha.
_PARTS: Final = {
    **dict.fromkeys(("text", "offers"), "text"),
    **dict.fromkeys(("bucket", "gathered", "answers"), "tuples"),
    **dict.fromkeys(("seen", "run", "manifest", "MANIFEST"), "set"),
    "queue": "queue",
}
PARTS: Final = ("text", "tuples", "set", "queue")

BATCH: Final = 10_000
_BATCH_LARGE: Final = 100_000


class WrongVerdictsError(Exception):
    """A method did not tell exactly the new URLs."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What one run moved.

    Attributes:
        method: its name in `METHODS`.
        offered: URLs.
        unique: of them.
        merges: how often what waited was merged with the set.
        moved: bytes by part of alpha.
        seconds: of the whole run, the making of URLs included; says nothing of a method's speed.
        model: what the paper's formula says.
    """

    method: str
    offered: int
    unique: int
    merges: int
    moved: dict[str, Moved]
    seconds: float
    model: float

    @property
    def alpha(self) -> float:
        """Bytes read and written for each byte of text offered."""
        return sum(self.share(part) for part in self.moved)

    def share(self, part: str) -> float:
        """A part of alpha."""
        return self.moved[part].both / (TEXT_BYTES * self.offered)


def run_trial(name: str, count: int, scale: Scale, directory: Path) -> Trial:
    """Offer `count` URLs to a method in an empty directory, to the last merge.

    Raises:
        WrongVerdictsError: it told other URLs new than those that are.
    """
    entry = METHODS[name]
    files = CountingFiles()
    started = time.monotonic()
    method = entry.make(directory, files, scale)
    unique = digest = 0
    for batch in offered(count, _BATCH_LARGE if count >= 100 * _BATCH_LARGE else BATCH):
        unique += int(batch.is_new.sum())
        digest = (digest + digest_of(batch.texts[batch.is_new])) % 2**64
        method.offer(batch)
    method.finish()
    if (method.queue.count, method.queue.digest) != (unique, digest):
        raise WrongVerdictsError(f"{entry.title}: told {method.queue.count} of {unique} new URLs, or others")
    return Trial(
        name,
        count,
        unique,
        method.merges,
        _by_part(files, count),
        time.monotonic() - started,
        entry.alpha(method, scale, count),
    )


def _by_part(files: CountingFiles, count: int) -> dict[str, Moved]:
    parts = dict.fromkeys(PARTS, Moved(0, 0))
    if "offers" in files.by_kind():
        # An offers file has keys beside text, written once and read once.
        keys = KEY_BYTES * count
        parts |= {"tuples": Moved(keys, keys), "text": Moved(-keys, -keys)}
    for kind, moved in files.by_kind().items():
        before = parts[_PARTS[kind]]
        parts[_PARTS[kind]] = Moved(before.read + moved.read, before.written + moved.written)
    return parts
