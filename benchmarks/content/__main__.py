"""`python -m benchmarks.content`: what `make bench-content` runs. Options: --help."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.content.pages import PAGE_BYTES, Pair, page, pair, simulated_pages
from benchmarks.content.way import Way, measure
from benchmarks.crawl.machine import describe_machine
from benchmarks.crawl.report import aligned, say
from benchmarks.drum_speed.confined import bounded, run_module
from bigcrawl.content.sketched import ALIKE
from bigcrawl.content.sketches import are_alike, shingles_of, sketches_of, sketches_of_shingles
from bigcrawl.content.text import TEXT_BYTES_MAX, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt

MEMORY_BYTES: Final = 256 << 20
US_MAX: Final = 100.0
MIRRORS_US_MAX: Final = 5.0
RECALL_MIN: Final = 0.95
PRECISION_MIN: Final = 0.99
NEAR_MIN: Final = 0.9  # of the Jaccard similarity

_CLASSES: Final = ((0.95, 1.01), (0.9, 0.95), (0.85, 0.9), (0.8, 0.85), (0.7, 0.8), (0.0, 0.7))
_SHARES: Final = (0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.2, 0.4, 1.0)
_EVEN_MAX: Final = 0.065  # pairs are spread evenly over similarities from 0.75 on
_THRESHOLDS: Final = tuple(percent / 100 for percent in range(84, 96))
_RUNS: Final = 40
_AT_ONCE: Final = 5  # pages whose sketches are made together
# The most expensive pages that were found.
_HOSTILE: Final = (
    *(piece * TEXT_BYTES_MAX for piece in (b"a ", b"h ", b"<a>", b"<s>", b"<script", b"<", b"l")),
    b"<script></script>" * TEXT_BYTES_MAX,
    "\u6f22".encode() * TEXT_BYTES_MAX,
)


def main() -> int:
    """Measure, print the tables; 1 when a promise is not kept, with --hold."""
    parser = argparse.ArgumentParser(prog="make bench-content", description=__doc__)
    parser.add_argument("--pairs", type=int, default=2_400, help="of pages that are compared")
    parser.add_argument("--exact", type=int, default=100_000_000, help="contents in the map of exact copies; 0: none")
    parser.add_argument("--near", type=int, default=4_000_000, help="pages in the map of near copies; 0: none")
    parser.add_argument("--hold", action="store_true", help="end with 1 when a promise is not kept")
    options = parser.parse_args()
    say(f"{describe_machine()}")
    shares = random.Random(3)
    kept = [
        cost(),
        quality(
            [pair(seed, _SHARES[seed % len(_SHARES)]) for seed in range(options.pairs)],
            [pair(seed, shares.uniform(0, _EVEN_MAX)) for seed in range(options.pairs)],
        ),
    ]
    for kind, pages in (("exact", options.exact), ("near", options.near)):
        kept += [memory(kind, pages)] if pages else []
    return 0 if all(kept) or not options.hold else 1


def cost() -> bool:
    """CPU of a sketch and of its parts, for ordinary pages, in batches as a node makes them, and for the worst ones."""
    pages = [page(seed) for seed in range(32)]
    batches = [pages[at : at + _AT_ONCE] for at in range(0, len(pages), _AT_ONCE)]
    texts = [texts_of(batch) for batch in batches]
    shingles = [shingles_of(text) for text in texts]
    whole = best_us(sketches_of, batches) / _AT_ONCE
    rows = [
        (f"a page of {PAGE_BYTES:,} bytes and 60 links, of {_AT_ONCE}", "us"),
        ("text", f"{best_us(texts_of, batches) / _AT_ONCE:.0f}"),
        ("shingles", f"{best_us(shingles_of, texts) / _AT_ONCE:.0f}"),
        ("sketch of them", f"{best_us(sketches_of_shingles, shingles) / _AT_ONCE:.0f}"),
        ("all", f"{whole:.0f}"),
        ("a page alone", f"{best_us(sketches_of, [[body] for body in pages]):.0f}"),
        ("the worst page of any size", f"{max(best_us(sketches_of, [[body]]) for body in _HOSTILE):.0f}"),
    ]
    say("", *aligned(rows))
    return cost_of_the_way() and whole <= US_MAX


def cost_of_the_way() -> bool:
    """CPU of a page on its whole way, for each value of BIGCRAWL_CONTENT_SEEN, and what mirrors add to `exact`."""
    ways = {
        "exact": measure(),
        "and mirrors": measure(has_mirrors=True),
        "near": measure(has_sketches=True),
        "near, simulated web": measure(simulated_pages(), has_sketches=True),
        "exact, all on two PLDs": measure(plds_alike=2),
        "and mirrors of these": measure(has_mirrors=True, plds_alike=2),
    }
    rows: list[tuple[str, ...]] = [("us of CPU a page", *ways)]
    rows += [(name, *(f"{getattr(way, name):.1f}" for way in ways.values())) for name in Way._fields]
    rows.append(("all but the network", *(f"{way.whole:.1f}" for way in ways.values())))
    say("", *aligned(rows))
    added = ways["and mirrors"].whole - ways["exact"].whole
    say(f"mirrors add {added:.1f} us; the aim is {MIRRORS_US_MAX:.0f}")
    return ways["near, simulated web"].whole <= US_MAX and added <= MIRRORS_US_MAX


def best_us(call: Callable[[Any], object], samples: Sequence[object]) -> float:
    """Mean us of CPU of the best of several runs over the samples."""
    took = []
    for _ in range(_RUNS):
        began = time.process_time_ns()
        for sample in samples:
            call(sample)
        took.append(time.process_time_ns() - began)
    return min(took) / len(samples) / 1_000


def quality(pairs: Sequence[Pair], spread: Sequence[Pair]) -> bool:
    """How many pairs of each similarity are taken for near copies, and recall and precision over thresholds."""
    compared, even = [compare_sketches(one) for one in pairs], [compare_sketches(one) for one in spread]
    rows = [("true similarity", "pairs", "share a band", "near copies")]
    for low, high in _CLASSES:
        those = [one for one in compared if low <= one.similarity < high]
        bands, both = sum(one.has_band for one in those), sum(one.is_taken(ALIKE) for one in those)
        rows.append((f"{low:.2f} to {min(high, 1):.2f}", f"{len(those)}", f"{bands}", f"{both}"))
    say("", *aligned(rows))
    table: list[tuple[str, ...]] = [
        (
            "BIGCRAWL_NEAR_SIMILARITY",
            "recall",
            "precision as here",
            "none between 0.8 and 0.9",
            "spread evenly: recall",
            "precision",
        )
    ]
    curve = {threshold: rates_at(compared, threshold) for threshold in (*_THRESHOLDS, ALIKE)}
    for at in sorted(curve):
        evenly = rates_at(even, at)
        table.append((f"{at:.2f}", *(f"{rate:.3f}" for rate in (*curve[at], evenly.recall, evenly.precision))))
    say("", *aligned(table))
    return curve[ALIKE].recall >= RECALL_MIN and curve[ALIKE].precision >= PRECISION_MIN


class Compared(NamedTuple):
    """A pair of pages: their true similarity, whether they share a band, and their sketches."""

    similarity: float
    has_band: bool
    sketches: npt.NDArray[np.uint64]

    def is_taken(self, similarity: float) -> bool:
        """Whether the pair is taken for near copies."""
        return self.has_band and bool(are_alike(self.sketches[:1], self.sketches[1:], similarity)[0])


class Rates(NamedTuple):
    """Of all pairs, and the precision without the pairs of a similarity between 0.8 and 0.9."""

    recall: float
    precision: float
    clear_precision: float


def rates_at(compared: Sequence[Compared], threshold: float) -> Rates:
    """How well near copies are found from a similarity of sketches on."""
    taken = [one.similarity for one in compared if one.is_taken(threshold)]
    near = sum(one.similarity >= NEAR_MIN for one in compared)
    right, clear = sum(similarity >= NEAR_MIN for similarity in taken), sum(similarity < 0.8 for similarity in taken)
    return Rates(right / near, right / max(1, len(taken)), right / max(1, right + clear))


def compare_sketches(one: Pair) -> Compared:
    """What the sketches of a pair's pages show."""
    made, packed, bands, _ = sketches_of([one.original, one.other])
    assert made.all()
    return Compared(one.similarity, bool((bands[0] == bands[1]).any()), packed)


def memory(kind: str, pages: int) -> bool:
    """Fill the maps in a process that the kernel holds to 256 MB, page cache included where it can."""
    with tempfile.TemporaryDirectory(prefix="bigcrawl-bench-") as directory, bounded(MEMORY_BYTES) as group:
        spec = {"directory": directory, "kind": kind, "pages": pages, "core": 1, "group": str(group) if group else ""}
        (path := Path(directory) / "spec.json").write_text(json.dumps(spec))
        got = json.loads(run_module("benchmarks.content.filling", [str(path)]))
    rows = [
        (f"{pages:,} pages, {kind} copies", ""),
        ("held to 256 MB with page cache", "yes" if group else "no: this user may make no cgroup"),
        ("memory of its own, MB", f"{got['anonymous_bytes'] / 1e6:.0f}"),
        ("disk, bytes a page", f"{got['disk_bytes'] / pages:.0f}"),
        ("CPU, us a page", f"{1e6 * got['cpu_s'] / pages:.1f}"),
        ("seconds", f"{got['seconds']:.0f}"),
        ("copies asked, found", f"{got['asked']:,}, {got['found']:,}"),
    ]
    say("", *aligned(rows))
    return bool(got["anonymous_bytes"] <= MEMORY_BYTES and got["found"] == got["asked"])


if __name__ == "__main__":
    sys.exit(main())
