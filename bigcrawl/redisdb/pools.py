"""Where connections to Redis go, according to its URL: to one server, or to whichever Sentinel calls the master.

redis://, rediss://, unix://                                as redis-py has them, with its options
redis+sentinel://user:password@host:port,host:port/service/0    the sentinels, and the name they know the master by
rediss+sentinel://                                          with TLS to the servers and to the sentinels
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import redis.asyncio as aredis
from redis.asyncio.connection import parse_url
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool

if TYPE_CHECKING:
    Pool = aredis.ConnectionPool

SENTINEL_PORT: Final = 26_379
SENTINEL_TIMEOUT_S: Final = 5.0
_SCHEME_END: Final = "+sentinel"


def make_pool(url: str, **options: Any) -> Pool:
    """Return a pool that makes connections; `options` are those of the library's connections.

    Raises:
        ValueError, TypeError: the URL is none of these, or has an unknown option.
    """
    return _sentinel_pool(url, options) if is_sentinel_url(url) else aredis.ConnectionPool.from_url(url, **options)


def is_sentinel_url(url: str) -> bool:
    """Whether the URL names sentinels, which know the master."""
    return url.partition("://")[0].endswith(_SCHEME_END)


async def close_sentinels(pool: Pool) -> None:
    """Close the connections to the sentinels, if there are any."""
    if isinstance(pool, SentinelConnectionPool):
        for sentinel in pool.sentinel_manager.sentinels:
            await sentinel.aclose()


def _sentinel_pool(url: str, options: dict[str, Any]) -> Pool:
    parts = urlsplit(url)
    login, at, hosts = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/")
    if not service or not hosts:
        raise ValueError("it must name sentinels and their service: redis+sentinel://host:26379,host:26379/service/0")
    scheme = parts.scheme.removesuffix(_SCHEME_END)
    query = f"?{parts.query}" if parts.query else ""
    told: dict[str, Any] = dict(parse_url(f"{scheme}://{login}{at}{hosts.partition(',')[0]}/{database}{query}"))
    for name in ("host", "port", "connection_class"):
        told.pop(name, None)
    tls = {"ssl": True} if scheme == "rediss" else {}
    tls |= {name: value for name, value in told.items() if name.startswith("ssl_")}
    of_sentinels = {**tls, "socket_timeout": SENTINEL_TIMEOUT_S, "socket_connect_timeout": SENTINEL_TIMEOUT_S}
    sentinels = Sentinel([_address(host) for host in hosts.split(",")], sentinel_kwargs=of_sentinels)  # type: ignore[no-untyped-call]
    return SentinelConnectionPool(service, sentinels, **{**options, **told, **tls})  # type: ignore[no-untyped-call]


def _address(host: str) -> tuple[str, int]:
    parts = urlsplit(f"//{host}")
    if not parts.hostname:
        raise ValueError(f"{host!r} is no sentinel: write host:port")
    return parts.hostname, parts.port or SENTINEL_PORT
