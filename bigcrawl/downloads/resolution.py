"""The address that a download connects to, as resolved and checked by the frontier."""

from __future__ import annotations

from scrapy.exceptions import CannotResolveHostError

from bigcrawl.politeness.dns_cache import GRACE_MS, DnsError
from bigcrawl.politeness.dns_shared import shared_dns
from bigcrawl.scheduler.adapter.registry import refusal


async def address_of(host: str) -> str:
    """Return the address of a name or a literal, from the frontier's cache.

    Raises:
        CannotResolveHostError: there is no address, or connections to it are not allowed.
    """
    name = host.rstrip(".").lower()
    try:
        found = shared_dns().peek(name, GRACE_MS) or await shared_dns().lookup(name)
    except DnsError as error:
        raise CannotResolveHostError(f"{host}: {error}") from error
    if refusal(found):
        raise CannotResolveHostError(f"{host} has an address in a closed range")
    return found[0]
