"""One side with one plug-in, as a process of the interpreter that has it: as `tests.integration.stock.side`."""

from __future__ import annotations

import json
import sys

from tests.integration.stock import side, spiders
from tests.plugins.spiders import SPIDERS

if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    for name, _ in order["crawls"]:
        spiders.SPIDERS[name] = SPIDERS[name]()
    side.main(order)
