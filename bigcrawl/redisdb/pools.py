"""Makes connections for a Redis URL: to one server, or to the master that Sentinel names.

redis://, rediss://, unix://                                    as in redis-py, with its options
redis+sentinel://user:password@host:port,host:port/service/0    the sentinels, and the name of the master
rediss+sentinel://                                              with TLS to the servers and to the sentinels
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import redis.asyncio as aredis
from redis import exceptions as errors
from redis.asyncio.connection import parse_url
from redis.asyncio.sentinel import MasterNotFoundError, Sentinel, SentinelConnectionPool

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.tls import check_certificates, tls_fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redis.asyncio.connection import AbstractConnection

    Pool = aredis.ConnectionPool

CONNECT_TIMEOUT_S: Final = 5.0

SENTINEL_PORT: Final = 26_379
SENTINEL_TIMEOUT_S: Final = 5.0
_SCHEME_END: Final = "+sentinel"


def checked_pool(url: str, on_connect: Callable[[AbstractConnection], Awaitable[None]]) -> Pool:
    """Return a pool for the URL in BIGCRAWL_REDIS_URL, unconnected. ConfigErrors show no password."""
    try:
        pool = make_pool(
            url,
            # The client limits the wait: asyncio.wait_for of redis-py may lose a cancellation in Python 3.11.
            socket_timeout=None,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            protocol=2,  # old servers understand it, so that our error names their version
            redis_connect_func=on_connect,
            retry=None,
            retry_on_error=[],
        )
        check_certificates(pool.make_connection())  # type: ignore[no-untyped-call]  # finds unknown options too
    except (ValueError, TypeError) as error:
        # The message may quote a part of a password that contains / or #.
        reason = error if "@" not in url else "not of the form redis://user:password@host:port/0 (escape / and #)"
        raise ConfigError(f"BIGCRAWL_REDIS_URL is {without_password(url)!r}: {reason}") from None
    return pool


def without_password(url: str) -> str:
    shown = re.sub(r"^([a-z+]+://)?.*@", r"\1***@", url, flags=re.DOTALL)
    return re.sub(r"(?<=password=)[^&]*", "***", shown)


def make_pool(url: str, **options: Any) -> Pool:
    return _sentinel_pool(url, options) if is_sentinel_url(url) else aredis.ConnectionPool.from_url(url, **options)


def is_sentinel_url(url: str) -> bool:
    return url.partition("://")[0].endswith(_SCHEME_END)


async def close_sentinels(pool: Pool) -> None:
    if isinstance(pool, SentinelConnectionPool):
        for sentinel in pool.sentinel_manager.sentinels:
            await sentinel.aclose()


class _Sentinels(Sentinel):
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
                self.sentinels[0], self.sentinels[at] = sentinel, self.sentinels[0]
                return state["ip"], state["port"]
        said = "; ".join(map(str, failures)) or "the sentinels do not know it"
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
