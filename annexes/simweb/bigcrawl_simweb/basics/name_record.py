"""The DNS record of a name that has more than one IPv4 address."""

from __future__ import annotations

from typing import NamedTuple


class NameRecord(NamedTuple):
    """A name's addresses, in order; without any, the name exists but has none.

    Without `ttl_s`, the resolver's default applies. `alias` is the target of a CNAME, with `alias_ttl_s` or that of the
    addresses.
    """

    addresses: tuple[str, ...]
    ttl_s: int | None = None
    alias: str = ""
    alias_ttl_s: int | None = None
    delay_ms: int = 0
