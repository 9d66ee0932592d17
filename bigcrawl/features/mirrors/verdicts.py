"""Mirrors: a PLD whose pages are mostly those of a greater PLD gets a smaller budget (docs/copies.md).

One of `SAMPLED_IN` contents, chosen by its key and a secret of the crawl, is a sample. Partitions compare the samples
of PLDs (`rows`); a lost row counts as a sample that is not shared. Of two PLDs, the one whose in-degree lies in a
higher octave is greater; in the same octave, the one with the larger key.

    free   -> mirror   at least `share` of the `WINDOW` samples up to the last shared one are shared, and one more is
    mirror -> free     less than three quarters of that are shared, or shared ones vouch for no more

The window ends with the last shared sample, so that a mirror is recognised even if it was crawled before the greater
PLD. Each newly reported shared sample, even an old one, vouches for `VOUCHED` of the mirror's current samples. After a
PLD is freed, only samples shared from then on count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bigcrawl.drum.bucket import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from bigcrawl.drum.bucket import Bucket
    from bigcrawl.drum.format import KeyArray

    Rows = npt.NDArray[Any]
    DivisorArray = npt.NDArray[np.uint32]

SAMPLED_IN: Final = 4
WINDOW: Final = 64
"""Samples weighed together, from about 256 pages."""

LEAST: Final = 16
"""Samples before the first verdict, from about 64 pages."""

SILENT: Final = 32
"""A mirror is freed after this many samples for which no shared one vouches; shared ones are reported in seconds."""

VOUCHED: Final = 2
"""For how many samples a shared one vouches. So a PLD that copies only one page in ten does not stay a mirror."""

FREED: Final = 0.75
"""A mirror is freed when its shared fraction falls below this part of the required share."""

RECORD: Final = np.dtype(
    [
        ("samples", "<u4"),
        ("last", "<u4"),
        ("shared", "<u8"),
        ("heard", "<u4"),
        ("other", "<u8"),
        ("state", "<u4"),
        ("recent", "<u8"),
    ]
)
"""The record of a PLD: its number of samples ever; the number of the last shared one; a bit for it and each of the 63
before it, set if shared; the sample up to which shared ones vouch for it; the PLD that shared the last one; `MIRROR` or
0; and 16 bits of each of its last four contents."""

VERDICT: Final = np.dtype([("state", "<u4"), ("shared", "<u4"), ("weighed", "<u4"), ("other", "<u8")])
"""The record of a PLD that is or was a mirror: the bits `MIRROR` and `TOLD`, and the basis of the last verdict."""

MIRROR: Final = 1
TOLD: Final = 2  # the last log message about the PLD calls it a mirror

SITE: Final = np.dtype([("pld", "<u8"), ("number", "<u4"), ("octave", "u1")])
"""The greatest PLD that has a sample, the sample's number there, and the octave of that PLD's in-degree."""

SAMPLES: Final = Kind("sample", RECORD, fresh_max=1024)
MIRRORS: Final = Kind("mirror", VERDICT, fresh_max=1024)
SITES: Final = Kind("site", SITE, fresh_max=1024)

_BITS: Final = (1 << WINDOW) - 1
_NUMBER_MAX: Final = (1 << 32) - 1
_TAG_BITS: Final = 16
_TAG_MASK: Final = (1 << _TAG_BITS) - 1
_TAGS_BITS: Final = 64
_SAMPLE_BITS: Final = SAMPLED_IN.bit_length() - 1
_KEY_MASK: Final = (1 << 64) - 1
_FIRST_OTHER: Final = 1 << 64 - _SAMPLE_BITS


def sample_secret(key_of: Callable[[bytes], int]) -> int:
    """Return the secret that chooses a crawl's samples, an odd number of 64 bits."""
    return key_of(b"the contents that are samples") | 1


def is_sample(content: int, secret: int = 1) -> bool:
    """Return whether a content is a sample. Without the secret, a mirror could compute and avoid samples."""
    return (content * secret & _KEY_MASK) < _FIRST_OTHER


def octaves_of(in_degrees: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """Return the octave of each in-degree: 0, 1, 2 for 2 and 3, 3 for 4 to 7, and so on."""
    octaves: npt.NDArray[np.uint8] = np.frexp(in_degrees.astype(np.float64))[1].astype(np.uint8)
    return octaves


class MirrorVerdict(NamedTuple):
    """The verdict on a PLD and its basis; `other` is the greater PLD that shares the last shared sample, or 0."""

    is_mirror: bool
    shared: int
    weighed: int
    other: int


def mirror_verdict_of(record: npt.NDArray[np.void]) -> MirrorVerdict:
    return MirrorRecord(*record.item()).verdict


def logged_verdict_of(record: npt.NDArray[np.void]) -> MirrorVerdict:
    state, shared, weighed, other = record.item()
    return MirrorVerdict(bool(state & MIRROR), shared, weighed, other)


class MirrorRecord:
    __slots__ = ("heard", "last", "other", "recent", "samples", "shared", "state")

    def __init__(
        self, samples: int, last: int, shared: int, heard: int, other: int, state: int, recent: int = 0
    ) -> None:
        self.samples = samples
        self.last = last
        self.shared = shared
        self.heard = heard
        self.other = other
        self.state = state
        self.recent = recent

    def record_content(self, content: int) -> bool:
        """Record the content of a sample; return False if it repeats one of the last four, as error pages do."""
        tag = content >> 2 * _TAG_BITS & _TAG_MASK or 1
        tags = [self.recent >> at & _TAG_MASK for at in range(0, _TAGS_BITS, _TAG_BITS)]
        others = [other for other in tags if other != tag]
        self.recent = tag
        for nth, other in enumerate(others[: _TAGS_BITS // _TAG_BITS - 1], 1):
            self.recent |= other << nth * _TAG_BITS
        return len(others) == len(tags)

    def count_sample(self) -> int:
        self.samples = min(self.samples + 1, _NUMBER_MAX)
        return self.samples

    def record_shared(self, number: int, other: int) -> None:
        """Record that a greater PLD has the sample with this number, too; repeats are harmless."""
        if not 0 < number <= self.samples:
            return  # the sample was counted in a state of the files that was lost
        behind = self.last - number
        if behind < 0:
            self.shared = (self.shared << -behind & _BITS if -behind < WINDOW else 0) | 1
            self.last = number
        elif behind < WINDOW:
            if self.shared >> behind & 1:
                return  # a repeat
            self.shared |= 1 << behind
        self.heard = min(max(self.heard, self.samples - SILENT) + VOUCHED, self.samples)
        self.other = other

    def update_verdict(self, share: float) -> int:
        """Decide whether the PLD is a mirror. Return the change in the number of mirrors: 1, 0 or -1."""
        weighed, shared = min(self.last, WINDOW), self.shared.bit_count()
        if self.state & MIRROR:
            if self.samples - self.heard < SILENT and shared >= FREED * share * weighed:
                return 0
            self.state &= ~MIRROR
            return -1
        if self.samples - self.heard >= SILENT or weighed < LEAST or shared < min(weighed, share * weighed + 1):
            return 0
        self.state |= MIRROR
        self.heard = self.samples
        return 1

    def reset(self) -> None:
        self.shared = 0

    @property
    def verdict(self) -> MirrorVerdict:
        shared = self.shared.bit_count()
        return MirrorVerdict(bool(self.state & MIRROR), shared, min(self.last, WINDOW), self.other)

    def as_tuple(self) -> tuple[int, ...]:
        return self.samples, self.last, self.shared, self.heard, self.other, self.state, self.recent


class MirrorRules(NamedTuple):
    share: float = 0.0
    divisor: int = 1


def divisors_of_mirrors(table: Bucket, plds: KeyArray, rules: MirrorRules) -> DivisorArray | None:
    if not len(table) or not len(plds):
        return None
    _, records = table.values(plds)
    are_mirrors = records["state"] & MIRROR != 0
    if not are_mirrors.any():
        return None
    divisors: DivisorArray = np.where(are_mirrors, rules.divisor, 1).astype(np.uint32)
    return divisors


def unlogged_verdicts(table: Bucket, plds: KeyArray) -> tuple[KeyArray, Rows] | None:
    """Return the PLDs whose last verdict is not logged, with records that mark it as logged; None without any."""
    if not len(table) or not len(plds):
        return None
    keys = np.unique(plds)
    _, records = table.values(keys)
    state = records["state"]
    changed = (state & MIRROR != 0) != (state & TOLD != 0)
    if not changed.any():
        return None
    records["state"] ^= np.uint32(TOLD)
    return keys[changed], records[changed]


def mirror_verdict_text(verdict: MirrorVerdict) -> str:
    other = f", the last one on that with the key {verdict.other:016x}" if verdict.other else ""
    return f"{verdict.shared} of {verdict.weighed} of its contents are also on a PLD with more in-links{other}"


def mirror_change_text(pld: str, verdict: MirrorVerdict, rules: MirrorRules) -> str:
    if not verdict.is_mirror:
        return f"{pld} is taken for a mirror no longer and has its whole budget again: {mirror_verdict_text(verdict)}"
    return f"{pld} is taken for a mirror and its budget divided by {rules.divisor}: {mirror_verdict_text(verdict)}"
