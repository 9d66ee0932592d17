"""What the throttle takes for one server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.clock import ManualClock
from bigcrawl.middlewares import throttle
from bigcrawl.politeness.dns_cache import DnsCache

if TYPE_CHECKING:
    import pytest

ADDRESSES = {
    "a.example": ["2606:4700::1"],
    "b.example": ["2606:4700::2"],
    "c.example": ["2606:4700:0:1::1"],
    "d.example": ["8.8.8.8"],
}


def test_network_of_a_server_is_one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for the frontier: an IPv6 /64 shares one gap, which one machine may have; a name without address has none."""

    async def resolve(host: str) -> list[str]:
        if host not in ADDRESSES:
            raise OSError(host)
        return ADDRESSES[host]

    async def scenario() -> list[str | None]:
        cache = DnsCache(resolve, ManualClock())
        monkeypatch.setattr(throttle, "shared_dns", lambda: cache)
        return [await throttle._server_of(host) for host in (*ADDRESSES, "gone.example", "2606:4700::3")]

    a, b, c, d, gone, literal = asyncio.run(scenario())
    assert a == b == literal == "2606:4700::/64"
    assert c not in (a, None)
    assert d == "8.8.8.8"
    assert gone is None
