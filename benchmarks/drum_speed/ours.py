"""DRUM at one size of the set: a process of its own, `python -m benchmarks.drum_speed.ours spec.json`.

The set is filled through the same class: with the keys of real URLs, from which duplicates are drawn, and, so far
as that is not enough, with random keys, which hashed URLs cannot be told from. Then URLs are offered and merged;
only that is timed, with every sync and every answer.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.drum_speed.confined import enter
from benchmarks.drum_speed.offered import CHUNK, Offers, keys_and_aux
from bigcrawl_drum.drum import Drum

if TYPE_CHECKING:
    from bigcrawl.drum.format import KeyArray
    from bigcrawl_drum.merge import Answer

# Enough that most URLs of a merge are not offered twice in it.
REAL_URLS_MAX: Final = 20_000_000


class Verdicts:
    """The receiver: takes the URLs that are new, as the next stage would."""

    def __init__(self) -> None:
        self.new = 0
        self.duplicate = 0
        self.new_bytes = 0

    def __call__(self, answer: Answer) -> None:
        is_new = ~answer.found
        urls = answer.aux.select(is_new)
        self.new += len(urls)
        self.duplicate += len(is_new) - len(urls)
        self.new_bytes += len(urls[-1]) if urls else 0


def measure(spec: dict[str, Any]) -> dict[str, Any]:
    """Fill, offer, merge; return the figures."""
    directory, keys_wanted, offered = Path(spec["directory"]), int(spec["keys"]), int(spec["urls"])
    verdicts = Verdicts()
    drum = Drum(directory, verdicts, memory_bytes=spec["memory_bytes"])
    started = time.perf_counter()
    real = min(keys_wanted, REAL_URLS_MAX)
    offers = Offers(real, seed=2)
    for start in range(0, real, CHUNK):
        drum.update(keys_and_aux(offers.first_ones(start, min(CHUNK, real - start)))[0])
    _fill(drum, keys_wanted - real)
    drum.merge()
    fill_s = time.perf_counter() - started
    held = len(drum)
    wall_s = cpu_s = 0.0
    count = 0
    while count < offered:
        urls = offers.chunk()
        wall, cpu = time.perf_counter(), time.process_time()
        keys, aux = keys_and_aux(urls)
        drum.check_update(keys, aux=aux)
        wall_s += time.perf_counter() - wall
        cpu_s += time.process_time() - cpu
        count += len(urls)
    wall, cpu = time.perf_counter(), time.process_time()
    drum.merge()
    wall_s += time.perf_counter() - wall
    cpu_s += time.process_time() - cpu
    if (verdicts.new, verdicts.new + verdicts.duplicate) != (offers.known - real, count):
        raise AssertionError(f"{verdicts.new} of {count} are new; {offers.known - real} expected")
    drum.close()
    return {
        "held": held,
        "urls": count,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "fill_s": fill_s,
        "rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "disk_bytes": sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()),
        "keys": len(drum),
    }


def _fill(drum: Drum, count: int) -> None:
    random = np.random.default_rng(1)
    while count > 0:
        keys: KeyArray = random.integers(0, 2**64, min(count, drum.batch_max // 2), dtype=np.uint64)
        drum.update(keys)
        count -= len(keys)


def main() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text())
    enter(Path(spec["procs"]) if spec["procs"] else None, spec["core"])
    sys.stdout.write(json.dumps(measure(spec)))


if __name__ == "__main__":
    main()
