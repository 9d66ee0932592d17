from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from redis import exceptions as errors
from redis.asyncio.connection import parse_url
from redis.asyncio.sentinel import MasterNotFoundError, Sentinel, SentinelConnectionPool

from bigcrawl.redisdb.tls import tls_fault

SENTINEL_PORT: Final = 26_379
SENTINEL_TIMEOUT_S: Final = 5.0


def sentinel_pool(url: str, options: dict[str, Any]) -> SentinelConnectionPool:
    parts = urlsplit(url)
    login, at, hosts = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/")
    if not service or not hosts:
        raise ValueError("it must name sentinels and their service: redis+sentinel://host:26379,host:26379/service/0")
    scheme = parts.scheme.partition("+")[0]
    query = f"?{parts.query}" if parts.query else ""
    told: dict[str, Any] = dict(parse_url(f"{scheme}://{login}{at}{hosts.partition(',')[0]}/{database}{query}"))
    for name in ("host", "port", "connection_class"):
        told.pop(name, None)
    tls = {"ssl": True} if scheme == "rediss" else {}
    tls |= {name: value for name, value in told.items() if name.startswith("ssl_")}
    of_sentinels = {**tls, "socket_timeout": SENTINEL_TIMEOUT_S, "socket_connect_timeout": SENTINEL_TIMEOUT_S}
    sentinels = _Sentinels([_address(host) for host in hosts.split(",")], sentinel_kwargs=of_sentinels)  # type: ignore[no-untyped-call]
    return SentinelConnectionPool(service, sentinels, **{**options, **told, **tls})  # type: ignore[no-untyped-call]


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


def _address(host: str) -> tuple[str, int]:
    parts = urlsplit(f"//{host}")
    if not parts.hostname:
        raise ValueError(f"{host!r} is no sentinel: write host:port")
    return parts.hostname, parts.port or SENTINEL_PORT
