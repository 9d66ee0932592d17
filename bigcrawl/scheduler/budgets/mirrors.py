"""Mirrors: a PLD most of whose pages are those of a greater PLD gets a smaller budget (step 5). No URL is dropped.

One content in `SAMPLED_IN`, chosen by its key and a secret of the crawl, is a sample. Of these, partitions tell each
other what PLDs have in common. Nothing waits for it, and a row that is lost is a sample that nobody shares:

    node               -> the PLD's partition       `sampled`   a page of this PLD has this content
    PLD's partition    -> the content's partition   `counted`   it is the n-th sample of a PLD of this in-degree
    content's partition -> the lesser PLD's         `shared`    a greater PLD has its n-th sample too

Of two PLDs the one with more in-links is greater, by the octave of its in-degree; of two in the same octave, the one
with the larger key. So of a family of mirrors one stays as it is, whoever was crawled first: the one that most of the
web links to. Who copies the pages of a PLD has its budget lowered only if as many PLDs link to the copy, by octaves; in
the same octave it is a matter of luck, which somebody who copies a PLD several times will have.

    free   -> mirror   of the `WINDOW` samples up to the last one that is shared, `share` of them are, and one more
    mirror -> free     so few of them that it is less than three quarters of that, or shared ones vouch for no more

The window ends with the last shared sample and not with the last one, so that a mirror is known that was crawled
before, or runs ahead of, the PLD whose pages it has. From then on, a shared sample that is heard of, be it an old one,
vouches for `VOUCHED` of those that the mirror has now. A freed one begins anew: what it has shared counts no more.

There is a record for each PLD that has a sample, and one for each sample. Verdicts are in a table of their own, which
has few records, because it is asked wherever a URL is placed.
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
"""Samples that are weighed together, of some 256 pages."""

LEAST: Final = 16
"""Samples before the first verdict, of some 64 pages."""

SILENT: Final = 32
"""So many samples that no shared one vouches for free a mirror. What is shared is heard seconds later."""

VOUCHED: Final = 2
"""For so many samples a shared one vouches. So whoever copies one page in ten of a PLD does not keep it a mirror."""

FREED: Final = 0.75
"""A mirror is free when less than this part of the share is shared."""

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
"""The record of a PLD: how many samples it ever had; the number of the last one that is shared; a bit for it and for
each of the 63 before it, set if that one is shared; up to which sample the shared ones vouch for it; with whom the last
one was shared, the key of a PLD; whether the PLD is a `MIRROR`; and 16 bits of each of its last four contents."""

VERDICT: Final = np.dtype([("state", "<u4"), ("shared", "<u4"), ("weighed", "<u4"), ("other", "<u8")])
"""The record of a PLD that ever was a mirror: `MIRROR` and `TOLD`, and what the last verdict was made of."""

MIRROR: Final = 1
TOLD: Final = 2  # what the log says of the PLD last is that it is a mirror

SITE: Final = np.dtype([("pld", "<u8"), ("number", "<u4"), ("octave", "u1")])
"""The record of a sample: the greatest PLD that has it, which of its samples it is, and the octave of its in-degree."""

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
    """Return what chooses a crawl's samples, an odd number of 64 bits; `key_of` makes the crawl's keys.

    All nodes and runs of a crawl have the same one. Nobody else knows it, unless the crawl's keys are public.
    """
    return key_of(b"the contents that are samples") | 1


def is_sample(content: int, secret: int = 1) -> bool:
    """Whether a content is a sample, by the highest bits of its key times the secret.

    The key is a hash that everybody can compute. Were it asked itself, a mirror could change the pages that are samples
    only, or have them on none of its pages. Cost: 0.1 us.
    """
    return (content * secret & _KEY_MASK) < _FIRST_OTHER


def octaves_of(in_degrees: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """Return the octave of each in-degree: 0, 1, 2 for 2 and 3, 3 for 4 to 7, and so on."""
    octaves: npt.NDArray[np.uint8] = np.frexp(in_degrees.astype(np.float64))[1].astype(np.uint8)
    return octaves


class MirrorVerdict(NamedTuple):
    """The verdict on a PLD, and what it is made of.

    Attributes:
        is_mirror: whether its budget is divided.
        shared: how many of the weighed samples a greater PLD has too.
        weighed: the samples up to the last one that is shared, `WINDOW` at most.
        other: the key of the greater PLD that had the last one; 0 if there is none.
    """

    is_mirror: bool
    shared: int
    weighed: int
    other: int


def mirror_verdict_of(record: npt.NDArray[np.void]) -> MirrorVerdict:
    """Return the verdict that the record of a PLD's samples holds."""
    return MirrorRecord(*record.item()).verdict


def told_verdict_of(record: npt.NDArray[np.void]) -> MirrorVerdict:
    """Return the verdict that was given last, of a PLD that ever was a mirror."""
    state, shared, weighed, other = record.item()
    return MirrorVerdict(bool(state & MIRROR), shared, weighed, other)


class MirrorRecord:
    """What is known of one PLD, to be changed by a step."""

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

    def __repr__(self) -> str:
        return f"<MirrorRecord samples={self.samples} shared={self.shared.bit_count()} state={self.state}>"

    def note_content(self, content: int) -> bool:
        """Note a sample, the last one from now on. Return whether its content is none of the last four that differ.

        An error page at many URLs, or a page that is visited again and again, is one sample, whatever nodes remember.
        """
        tag = content >> 2 * _TAG_BITS & _TAG_MASK or 1
        tags = [self.recent >> at & _TAG_MASK for at in range(0, _TAGS_BITS, _TAG_BITS)]
        others = [other for other in tags if other != tag]
        self.recent = tag
        for nth, other in enumerate(others[: _TAGS_BITS // _TAG_BITS - 1], 1):
            self.recent |= other << nth * _TAG_BITS
        return len(others) == len(tags)

    def count_sample(self) -> int:
        """Count a sample. Return its number; the first is 1."""
        self.samples = min(self.samples + 1, _NUMBER_MAX)
        return self.samples

    def note_shared(self, number: int, other: int) -> None:
        """Another PLD, a greater one, has the sample with this number too. It may be said again."""
        if not 0 < number <= self.samples:
            return  # files that were lost knew of it
        behind = self.last - number
        if behind < 0:
            self.shared = (self.shared << -behind & _BITS if -behind < WINDOW else 0) | 1
            self.last = number
        elif behind < WINDOW:
            if self.shared >> behind & 1:
                return  # it was said before
            self.shared |= 1 << behind
        self.heard = min(max(self.heard, self.samples - SILENT) + VOUCHED, self.samples)
        self.other = other

    def judge(self, share: float) -> int:
        """Give the verdict. Return by how many there are more mirrors now: 1, 0 or -1."""
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

    def begin_anew(self) -> None:
        """Forget what is shared, because it was freed: only what is shared from now on makes it a mirror again."""
        self.shared = 0

    @property
    def verdict(self) -> MirrorVerdict:
        """The verdict that was given last."""
        shared = self.shared.bit_count()
        return MirrorVerdict(bool(self.state & MIRROR), shared, min(self.last, WINDOW), self.other)

    def values(self) -> tuple[int, ...]:
        """Return the fields of `RECORD`."""
        return self.samples, self.last, self.shared, self.heard, self.other, self.state, self.recent


class MirrorRules(NamedTuple):
    """When a PLD is a mirror, and by what its budget is then divided. A `share` of 0 disables mirrors."""

    share: float = 0.0
    divisor: int = 1


NO_MIRRORS: Final = MirrorRules()


class Mirrors:
    """The verdicts on PLDs in a table of kind `MIRRORS`."""

    def __init__(self, table: Bucket, rules: MirrorRules) -> None:
        self._table = table
        self._rules = rules

    def __repr__(self) -> str:
        return f"<Mirrors {self._rules!r} {self._table!r}>"

    def divisors(self, plds: KeyArray) -> DivisorArray | None:
        """Return the divisors of PLDs' budgets, or None if none of them is a mirror."""
        if not self._rules.share or not len(self._table) or not len(plds):
            return None
        _, records = self._table.values(plds)
        are_mirrors = records["state"] & MIRROR != 0
        if not are_mirrors.any():
            return None
        divisors: DivisorArray = np.where(are_mirrors, self._rules.divisor, 1).astype(np.uint32)
        return divisors

    def untold(self, plds: KeyArray) -> tuple[KeyArray, Rows] | None:
        """Return those of some PLDs whose verdict was not told yet, with records in which it is; None if there is none.

        Args:
            plds: keys, shape (n,), duplicates allowed.
        """
        if not self._rules.share or not len(self._table) or not len(plds):
            return None
        keys = np.unique(plds)
        _, records = self._table.values(keys)
        state = records["state"]
        changed = (state & MIRROR != 0) != (state & TOLD != 0)
        if not changed.any():
            return None
        records["state"] ^= np.uint32(TOLD)
        return keys[changed], records[changed]


class MirrorChange(NamedTuple):
    """The name of a PLD that was just found to be a mirror, or is one no longer, and why."""

    pld: str
    verdict: MirrorVerdict


def mirror_verdict_text(verdict: MirrorVerdict) -> str:
    """Describe a verdict: `61 of 64 of its contents are also on a PLD with more in-links, the last one ...`."""
    other = f", the last one on that with the key {verdict.other:016x}" if verdict.other else ""
    return f"{verdict.shared} of {verdict.weighed} of its contents are also on a PLD with more in-links{other}"


def mirror_change_text(change: MirrorChange, rules: MirrorRules) -> str:
    """Describe a change, for the operator."""
    pld, verdict = change
    if not verdict.is_mirror:
        return f"{pld} is taken for a mirror no longer and has its whole budget again: {mirror_verdict_text(verdict)}"
    return f"{pld} is taken for a mirror and its budget divided by {rules.divisor}: {mirror_verdict_text(verdict)}"
