from __future__ import annotations

from typing import Final

cycle_ended: Final = object()
"""A cycle has ended: `handler(spider, cycle_ended)`, on one node; docs/guide/recrawl.md has the fields of the dict."""

BY_NAME: Final = {"cycle_ended": cycle_ended}
