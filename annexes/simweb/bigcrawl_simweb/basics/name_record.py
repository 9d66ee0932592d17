"""The resolver's answers for names of a simulated web: records with several addresses, and failures."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class NameRecord(NamedTuple):
    """A name's addresses, in order; may be empty for an existing name.

    Without `ttl_s`, the resolver's default applies. `alias` is the target of a CNAME, with `alias_ttl_s` or that of the
    addresses.
    """

    addresses: tuple[str, ...]
    ttl_s: int | None = None
    alias: str = ""
    alias_ttl_s: int | None = None
    delay_ms: int = 0


class NameFault(Enum):
    SERVFAIL = "servfail"  # it reports a failure
    SILENT = "silent"  # the client waits until its timeout
