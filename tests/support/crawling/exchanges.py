"""Exchanges for tests, all of one host unless they say otherwise."""

from __future__ import annotations

from typing import Any

from bigcrawl_simweb.basics.exchange import Exchange

A, B = "127.16.0.1", "127.16.0.2"


def page(start_ms: int, target: str = "/", status: int = 200, **more: Any) -> Exchange:
    """An exchange of host A that takes no time."""
    values: dict[str, Any] = {"end_ms": start_ms, "host": A} | more
    return Exchange(start_ms=start_ms, target=target, status=status, **values)
