"""What a name resolves to, where there is more to say of it than one IPv4 address."""

from __future__ import annotations

from typing import NamedTuple


class NameRecord(NamedTuple):
    """A name's addresses and how they are told.

    Attributes:
        addresses: IPv4 and IPv6, in order; none: the name exists and has no address.
        ttl_s: for how long clients may remember them; None: as long as the resolver says of all.
        alias: the name that this one is a CNAME of, and whose addresses they are; empty: it is none.
        alias_ttl_s: for how long clients may remember that it is; None: as long as the addresses.
        delay_ms: how long the reply takes.
    """

    addresses: tuple[str, ...]
    ttl_s: int | None = None
    alias: str = ""
    alias_ttl_s: int | None = None
    delay_ms: int = 0
