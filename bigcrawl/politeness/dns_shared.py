"""The process's single DNS cache, so that a connection goes to the address that was checked."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bigcrawl.clock import SystemClock
from bigcrawl.config import DnsConfig
from bigcrawl.politeness.dns_cache import DnsCache

if TYPE_CHECKING:
    from bigcrawl.politeness.dns_cache import DnsAnswer
    from bigcrawl.politeness.dns_resolver import DnsResolver

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _SharedObjects:
    """The shared objects; `users` counts those that joined and have not left."""

    config: DnsConfig = field(default_factory=DnsConfig)
    cache: DnsCache | None = None
    resolver: DnsResolver | None = None
    users: int = 0


_shared = _SharedObjects()


def shared_dns() -> DnsCache:
    if _shared.cache is None:
        config = _shared.config
        _shared.cache = DnsCache(
            _resolve,
            SystemClock(),
            ttl_min_ms=config.ttl_min_ms,
            ttl_max_ms=config.ttl_max_ms,
            negative_ttl_ms=config.negative_ttl_ms,
        )
    return _shared.cache


async def _resolve(host: str) -> DnsAnswer:
    if _shared.resolver is None:
        from bigcrawl.politeness.dns_resolver import DnsResolver

        _shared.resolver = DnsResolver(_shared.config)
    return await _shared.resolver(host)


def choose_dns(config: DnsConfig) -> None:
    """Replace the cache by one with these settings, if they differ and it is unused."""
    if _shared.config == config:
        return
    if _shared.users:
        logger.warning("another crawl in this process has other BIGCRAWL_DNS_ settings; they apply to this crawl too")
    else:
        _shared.config, _shared.cache, _shared.resolver = config, None, None


def join_dns(config: DnsConfig) -> DnsCache:
    """Use the cache until `leave_dns`. These settings apply only if nobody uses it yet."""
    choose_dns(config)
    _shared.users += 1
    return shared_dns()


async def leave_dns() -> None:
    """Stop using the cache. The last user to leave cancels the pending questions; answers are kept."""
    _shared.users = max(0, _shared.users - 1)
    if not _shared.users and _shared.cache is not None:
        await _shared.cache.close()
        if _shared.resolver is not None:
            await _shared.resolver.close()
