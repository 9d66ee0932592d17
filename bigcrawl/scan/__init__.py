"""Reads a page's tags and attributes and joins its plain references: in C where that was built, else in Python.

    pure        the functions in Python
    compiled    the same in C: `compiled.c`
    names       the elements that they read, and how a name ends
    plain       references that can be joined as strings

Only this module imports one of the twins. tests/unit/scan holds both to the same answers: change both or none (0215).
PURE_BIGCRAWL=1 in the environment chooses Python, to compare them and for reports of errors.
"""

from __future__ import annotations

import os

from bigcrawl.scan import pure

__all__ = ["CODE", "attributes", "join_plain", "runs"]

CODE, runs, attributes, join_plain = "Python", pure.runs, pure.attributes, pure.join_plain
if not os.environ.get("PURE_BIGCRAWL"):
    try:
        from bigcrawl.scan import compiled
    except ImportError:  # no compiler, or another platform
        pass
    else:
        CODE, runs, attributes = "C", compiled.runs, compiled.attributes
        join_plain = compiled.join_plain
