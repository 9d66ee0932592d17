"""Makes connections for a Redis URL: to one server, or to the master that Sentinel names.

redis://, rediss://, unix://                                    as in redis-py, with its options
redis+sentinel://user:password@host:port,host:port/service/0    the sentinels, and the name of the master
rediss+sentinel://                                              with TLS to the servers and to the sentinels
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import redis.asyncio as aredis

from bigcrawl.exceptions import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redis.asyncio.connection import AbstractConnection

    Pool = aredis.ConnectionPool

CONNECT_TIMEOUT_S: Final = 5.0

_TLS: Final = "rediss"
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
        connection = pool.make_connection()  # type: ignore[no-untyped-call]  # finds unknown options too
        if url.startswith(_TLS):
            from bigcrawl.redisdb.tls import check_certificates

            check_certificates(connection)
    except (ValueError, TypeError) as error:
        # The message may quote a part of a password that contains / or #.
        reason = error if "@" not in url else "not of the form redis://user:password@host:port/0 (escape / and #)"
        raise ConfigError(f"BIGCRAWL_REDIS_URL is {without_password(url)!r}: {reason}") from None
    return pool


def without_password(url: str) -> str:
    shown = re.sub(r"^([a-z+]+://)?.*@", r"\1***@", url, flags=re.DOTALL)
    return re.sub(r"(?<=password=)[^&]*", "***", shown)


def make_pool(url: str, **options: Any) -> Pool:
    if not is_sentinel_url(url):
        return aredis.ConnectionPool.from_url(url, **options)
    from bigcrawl.redisdb.sentinels import sentinel_pool

    return sentinel_pool(url, options)


def is_sentinel_url(url: str) -> bool:
    return url.partition("://")[0].endswith(_SCHEME_END)


async def close_sentinels(pool: Pool) -> None:
    manager = getattr(pool, "sentinel_manager", None)
    for sentinel in manager.sentinels if manager is not None else ():
        await sentinel.aclose()
