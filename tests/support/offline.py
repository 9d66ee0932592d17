"""Cuts a process off from every network, its own machine's included, and counts who tries to get out."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

ATTEMPTS: list[str] = []
"""What was tried, in order. An exception alone might be caught and taken for a host that is away."""

_EVENTS = frozenset(
    {"socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"}
)


def cut_off() -> None:
    """Refuse connections, listening and look-ups from now on. libcurl, which has no hook, cannot be used at all."""
    sys.addaudithook(_refuse)
    try:
        import pycurl
    except ImportError:
        return
    pycurl.Curl = pycurl.CurlMulti = _no_curl


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _EVENTS:
        ATTEMPTS.append(f"{event} {arguments[1:]}")
        raise ConnectionRefusedError(f"this process has no network: {event}")


def _no_curl(*_: object) -> NoReturn:
    ATTEMPTS.append("pycurl")
    raise ConnectionRefusedError("this process has no network: pycurl")
