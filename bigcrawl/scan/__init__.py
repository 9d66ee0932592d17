"""Reads a page's tags, joins its plain references, and remembers links: in C where that was built, else in Python.

    pure        the functions in Python
    compiled    the same in C: `compiled.c`
    names       the elements that they read, and how a name ends
    plain       references that can be joined as strings

Only this module imports one of the twins. tests/unit/scan holds both to the same answers: change both or none (0215).
PURE_BIGCRAWL=1 in the environment chooses Python, to compare them and for reports of errors.
"""

from __future__ import annotations

import os

__all__ = ["CODE", "attributes", "join_plain", "other_origins", "remember", "runs"]

try:
    if os.environ.get("PURE_BIGCRAWL"):
        raise ImportError  # noqa: TRY301 - as where C is missing
    from bigcrawl.scan.compiled import attributes, join_plain, other_origins, remember, runs
except ImportError:  # not wanted, no compiler, or another platform
    from bigcrawl.scan.pure import attributes, join_plain, other_origins, remember, runs

    CODE = "Python"
else:
    CODE = "C"
