"""The figures that IRLbot §4.4 and §4.5 print, as they are printed.

A figure is kept as text, because its digits say how far it was cut: the paper rounds some and truncates others.
"""

from __future__ import annotations

from typing import Final

# Pages of the crawl, N; every table has these rows.
PAGES: Final = (800 * 10**6, 8 * 10**9, 80 * 10**9, 800 * 10**9, 8 * 10**12)
PAGE_NAMES: Final = ("800M", "8B", "80B", "800B", "8T")

# alpha at R = 1 GB and D = 4.39 TB: Mercator-B, PolyBot, DRUM.
TABLE_2: Final = (
    ("11.6", "69", "2.26"),
    ("93", "663", "2.35"),
    ("917", "6610", "3.3"),
    ("9156", "66082", "12.5"),
    ("91541", "660802", "104"),
)
TABLE_2_MEMORY: Final = 10**9
TABLE_2_DISK: Final = 4_390 * 10**9

# alpha at D = max(pHn, 1 TB): Mercator-B and DRUM at R = 4 GB, then both at R = 8 GB.
TABLE_3: Final = (
    ("4.48", "2.30", "3.29", "2.30"),
    ("25", "2.7", "13.5", "2.7"),
    ("231", "3.3", "116", "3.3"),
    ("2290", "3.3", "1146", "3.3"),
    ("22887", "8.1", "11444", "3.7"),
)
TABLE_3_MEMORY: Final = (4 * 10**9, 8 * 10**9)
TABLE_3_DISK_MIN: Final = 10**12

# Theorem 3 at N = 8T and R = 8 GB, in pages/s, on 15 % of a RAID of 675 MB/s.
DISK_BYTES_PER_S: Final = 101_250_000
PAGES_PER_S: Final = {"Mercator-B": "1.4", "PolyBot": "0.2", "DRUM": "4192"}
# Of the same paragraph: how much slower than DRUM Mercator-B is, and than Mercator-B PolyBot.
MERCATOR_TO_DRUM: Final = "3075"
POLYBOT_TO_MERCATOR: Final = "7.2"

# 2 + p + 2H/b, and equation (6) at R of 1 GB and 2 GB, in TB.
BOUND: Final = "2.256"
OPTIMAL_DISK_TB: Final = ("4.39", "17")


def agrees(printed: str, value: float) -> bool:
    """Return whether the value, rounded or truncated to the printed digits, is the printed figure."""
    digits = len(printed.partition(".")[2])
    return int(float(printed) * 10**digits + 0.5) in {int(value * 10**digits), int(value * 10**digits + 0.5)}
