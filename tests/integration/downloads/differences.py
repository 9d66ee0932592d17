"""Where two records differ, one line a place: pytest's own diff of such large values is hard to read."""

from __future__ import annotations

from typing import Any

from tests.integration.downloads.case import NOTHING


def differences(wanted: Any, found: Any, path: str = "") -> list[str]:
    """Lines "path: wanted, but found"; empty when both are equal."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        pairs = {key: (wanted.get(key, NOTHING), found.get(key, NOTHING)) for key in {**wanted, **found}}
    elif isinstance(wanted, (list, tuple)) and isinstance(found, (list, tuple)) and len(wanted) == len(found):
        pairs = dict(enumerate(zip(wanted, found, strict=True)))
    else:
        return [] if wanted == found else [f"{path}: {wanted!r}, but {found!r}"]
    return [line for key, (one, other) in pairs.items() for line in differences(one, other, f"{path}[{key!r}]")]


def put(told: Any, path: str, value: object) -> None:
    """Change the value at a path such as `record.-1.meta.depth`, or let a function do so; it must be another then."""
    last: Any
    *names, last = (int(name) if name.lstrip("-").isdigit() else name for name in path.split("."))
    for name in names:
        told = told[name]
    now = told[last] if isinstance(told, list) else told.get(last, NOTHING)
    if callable(value):
        value = value(now)
    assert now != value, f"{path} is {value!r} with stock Scrapy too"
    if value == NOTHING:
        del told[last]
    else:
        told[last] = value
