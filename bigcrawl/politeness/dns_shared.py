"""The process's one DNS cache: the frontier asks it before a fetch, the reactor's resolver connects by it.

That both see one cache is what makes the address that was checked the one that is connected to.
"""

from __future__ import annotations

from functools import cache

from bigcrawl.clock import SystemClock
from bigcrawl.politeness.dns_cache import DnsCache, getaddrinfo_resolver


@cache
def shared_dns() -> DnsCache:
    """The cache of this process, made when first asked for."""
    return DnsCache(getaddrinfo_resolver(), SystemClock())
