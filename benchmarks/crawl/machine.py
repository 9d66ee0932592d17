"""What the figures were taken on."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final

_PACKAGES: Final = ("bigcrawl", "scrapy", "scrapy-redis", "twisted", "redis", "hiredis")


def describe_machine() -> dict[str, Any]:
    """Processor, system, Python, and the versions of what was compared; None for what is not installed."""
    model = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    installed = {found.name.lower(): found.version for found in distributions()}
    return {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "processor": model[0].partition(":")[2].strip() if model else platform.machine(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: installed.get(name) for name in _PACKAGES},
    }
