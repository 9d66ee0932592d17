"""Where connections to Redis go, according to its URL: to one server, or to whichever Sentinel calls the master.

redis://, rediss://, unix://                                as redis-py has them, with its options
redis+sentinel://user:password@host:port,host:port/service/0    the sentinels, and the name they know the master by
rediss+sentinel://                                          with TLS to the servers and to the sentinels
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import redis.asyncio as aredis
from redis import exceptions as errors
from redis.asyncio.connection import parse_url
from redis.asyncio.sentinel import MasterNotFoundError, Sentinel, SentinelConnectionPool

from bigcrawl.redisdb.tls import tls_fault

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


class _Sentinels(Sentinel):
    """Says what is wrong with each sentinel in a few words. The library writes down the whole client of each."""

    async def discover_master(self, service_name: str) -> tuple[str, int]:
        failures: list[errors.RedisError] = []
        for at, sentinel in enumerate(self.sentinels):
            try:
                masters: Any = await sentinel.sentinel_masters()
            except (errors.ConnectionError, errors.TimeoutError) as error:
                failures.append(error)
                continue
            state = masters.get(service_name)
            if state and self.check_master_state(state, service_name):
                self.sentinels[0], self.sentinels[at] = sentinel, self.sentinels[0]  # the next one to be asked
                return state["ip"], state["port"]
        said = "; ".join(map(str, failures)) or "the sentinels do not know it"
        # A sentinel that is only away may yet accept the connection.
        has_bad_tls = len(failures) == len(self.sentinels) and all(map(tls_fault, failures))
        raise MasterNotFoundError(f"No master found for {service_name!r}: {said}") from (
            failures[0] if has_bad_tls else None
        )


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
    sentinels = _Sentinels([_address(host) for host in hosts.split(",")], sentinel_kwargs=of_sentinels)  # type: ignore[no-untyped-call]
    return SentinelConnectionPool(service, sentinels, **{**options, **told, **tls})  # type: ignore[no-untyped-call]


def _address(host: str) -> tuple[str, int]:
    parts = urlsplit(f"//{host}")
    if not parts.hostname:
        raise ValueError(f"{host!r} is no sentinel: write host:port")
    return parts.hostname, parts.port or SENTINEL_PORT
