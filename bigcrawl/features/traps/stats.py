from __future__ import annotations

from typing import Final

from bigcrawl.table_rows import Stat

STATS: Final = (
    Stat(
        "bigcrawl/traps/{kind}",
        "counter",
        "URLs",
        "Trap-shaped URLs sent to the seen check; each counts under all its kinds.",
        "scheduler/adapter/spider_intake.py",
        (
            ("long", "longer than BIGCRAWL_TRAP_URL_BYTES"),
            ("repeats", "a path segment that occurs at least BIGCRAWL_TRAP_REPEATS times"),
            ("deep", "more segments than BIGCRAWL_TRAP_SEGMENTS, or more hops than BIGCRAWL_TRAP_HOPS"),
            ("session", "a session id"),
            ("calendar", "a calendar page"),
            ("parameters", "at least BIGCRAWL_TRAP_PARAMETERS query parameters"),
        ),
    ),
)
