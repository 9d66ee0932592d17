"""Write numbered exchanges without end; print each number once it is written. Waits to be killed."""

from __future__ import annotations

import itertools
import sys

from bigcrawl.warc.segments import SealingOptions, WarcWriter
from tests.unit.warc.reading import exchange

if __name__ == "__main__":
    writer = WarcWriter(sys.argv[1], "killed", "node", sealing=SealingOptions(100_000))
    for number in itertools.count():
        writer.write(exchange(number, b"%d " % number * 2000))
        print(number, flush=True)  # the acknowledgement  # noqa: T201
