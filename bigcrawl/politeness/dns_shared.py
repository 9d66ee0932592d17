"""The process's one DNS cache: the frontier asks it before a fetch, the reactor's resolver connects by it.

That both see one cache is what makes the address that was checked the one that is connected to. Its settings are
those of who joins first; a crawl beside that one in the same process gets them too.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from bigcrawl.clock import SystemClock
from bigcrawl.config import DnsConfig
from bigcrawl.politeness.dns_cache import DnsCache
from bigcrawl.politeness.dns_resolver import DnsResolver

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Shared:
    """What the process shares; `users` have joined and not left."""

    config: DnsConfig = field(default_factory=DnsConfig)
    cache: DnsCache | None = None
    resolver: DnsResolver | None = None
    users: int = 0


_shared = _Shared()


def shared_dns() -> DnsCache:
    """The cache of this process, made when first asked for."""
    if _shared.cache is None:
        config = _shared.config
        _shared.resolver = DnsResolver(config)
        _shared.cache = DnsCache(
            _shared.resolver,
            SystemClock(),
            ttl_min_ms=config.ttl_min_ms,
            ttl_max_ms=config.ttl_max_ms,
            negative_ttl_ms=config.negative_ttl_ms,
        )
    return _shared.cache


def choose_dns(config: DnsConfig) -> None:
    """Make the cache anew by these settings, if they are other ones and nobody uses it."""
    if _shared.config == config:
        return
    if _shared.users:
        logger.warning("another crawl of this process has other BIGCRAWL_DNS_ settings, which hold for both")
    else:
        _shared.config, _shared.cache = config, None


def join_dns(config: DnsConfig) -> DnsCache:
    """Use the cache, by these settings if nobody uses it yet; until `leave_dns`."""
    choose_dns(config)
    _shared.users += 1
    return shared_dns()


async def leave_dns() -> None:
    """The last one that leaves gives up the questions under way; answers are kept."""
    _shared.users = max(0, _shared.users - 1)
    if not _shared.users and _shared.cache is not None and _shared.resolver is not None:
        await _shared.cache.close()
        await _shared.resolver.close()
