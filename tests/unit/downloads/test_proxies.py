"""A proxy that refuses a tunnel has answered; its answers are not odd."""

from __future__ import annotations

import pytest

from bigcrawl.downloads.proxies import refuses_tunnel

OPENING = "Could not open CONNECT tunnel with proxy 127.0.0.1:3128 "


@pytest.mark.parametrize(
    ("extra", "refuses"),
    [
        ({"status": 407, "reason": b"Proxy Authentication Required"}, True),
        ({"status": 502, "reason": b""}, True),
        ({"status": 302, "reason": b"Found"}, True),
        ({"status": 204, "reason": b"No Content"}, False),
        (b"HTTP/1.1 200OK", False),
        (b"SSH-2.0-OpenSSH", False),
    ],
)
def test_a_refusal_is_told_from_an_odd_answer(extra: object, refuses: bool) -> None:
    """As Scrapy's handler writes its error."""
    assert refuses_tunnel(f"{OPENING}[{extra!r}]") is refuses
