"""One side with one plug-in, as a process of the interpreter that has it: as `tests.integration.stock.side`.

A module of `tests.plugins.projects` is the project: its `SETTINGS`, as the plug-in's own pages have them, what bigcrawl
takes besides as `OURS`, and its `Spider`.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

from tests.integration.stock import side, spiders


def main(order: dict[str, Any]) -> None:
    project = importlib.import_module(f"tests.plugins.projects.{order['project']}")
    spiders.SPIDERS["plugin"] = project.Spider
    ours, given = order["ours"], order["settings"]
    settings = {**order["common"], **project.SETTINGS, **(ours and getattr(project, "OURS", {})), **ours, **given}
    for name in ("ADDONS", "EXTENSIONS"):
        parts = (order["common"], project.SETTINGS, ours, given)
        settings[name] = {cls: place for part in parts for cls, place in part.get(name, {}).items()}
    side.main({**order, "crawls": [["plugin", settings]]})


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
