"""The path from which projects import features' middlewares and `PageUnchangedError`."""

from __future__ import annotations

from typing import Any

from bigcrawl.feature_list import modules_of


def __getattr__(name: str) -> Any:
    for module in modules_of("middlewares"):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=None)
