"""Finds the address to connect to, in the DNS cache that the frontier fills."""

from __future__ import annotations

from scrapy.exceptions import CannotResolveHostError

from bigcrawl.politeness.dns_cache import GRACE_MS, DnsError
from bigcrawl.politeness.dns_shared import shared_dns
from bigcrawl.scheduler.adapter.registry import connection_refusal, is_proxy


async def address_of(host: str) -> str:
    """Return a host's address, unchecked for a proxy; raise CannotResolveHostError if it has no permitted one."""
    name = host.rstrip(".").lower()
    try:
        found = shared_dns().cached_addresses(name, GRACE_MS) or await shared_dns().lookup(name)
    except DnsError as error:
        raise CannotResolveHostError(f"{host}: {error}") from error
    if not is_proxy(host) and connection_refusal(found):
        raise CannotResolveHostError(f"{host} has an address in a closed range")
    return found[0]
