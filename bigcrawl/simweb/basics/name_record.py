"""The DNS record of a name that has more than one IPv4 address."""

from __future__ import annotations

from typing import NamedTuple


class NameRecord(NamedTuple):
    """A name's addresses and how they are sent.

    Attributes:
        addresses: IPv4 and IPv6, in order; empty: the name exists and has no address.
        ttl_s: how long clients may cache them; None: the resolver's default.
        alias: the name that this one is a CNAME for, which has these addresses; empty: it is not a CNAME.
        alias_ttl_s: how long clients may cache the CNAME; None: as long as the addresses.
        delay_ms: how long the reply takes.
    """

    addresses: tuple[str, ...]
    ttl_s: int | None = None
    alias: str = ""
    alias_ttl_s: int | None = None
    delay_ms: int = 0
