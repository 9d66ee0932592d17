"""The names of the rules for revisits (`BIGCRAWL_REVISIT`); `policies` implements them."""

from __future__ import annotations

from typing import Final

NEVER: Final = "never"
PERIODIC: Final = "periodic"
CHANGE_RATE: Final = "change-rate"
QUALITY: Final = "quality"
FRESHNESS: Final = "freshness"
CYCLES: Final = "cycles"
RULES: Final = (NEVER, PERIODIC, CHANGE_RATE, QUALITY, FRESHNESS, CYCLES)

TRUST: Final = 8
"""The largest factor by which a site's hint may change a wait."""
