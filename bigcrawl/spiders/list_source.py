from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from bigcrawl.exceptions import ConfigError, RewoundError, TransientStoreError
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import ListKeys
from bigcrawl.redisdb.scripts.entries import take_entries

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from bigcrawl.redisdb.scripts.entries import EntryBatch, TakenEntries

ENTRY_BYTES_MAX: Final = 4 << 20  # the limit of a stored request
BATCH_BYTES_MAX: Final = 1 << 20
_PARAMS: Final = ("host", "port", "db", "username", "password", "unix_socket_path")


def redis_url_of(settings: BaseSettings) -> str | None:
    params = settings.getdict("REDIS_PARAMS")
    named = {name: settings.get(f"REDIS_{name.upper()}") for name in ("url", "host", "port", "db")}
    params |= {name: value for name, value in named.items() if value}
    if params.get("url"):
        return str(params["url"])
    if not any(params.get(name) for name in _PARAMS):
        return None
    user, password = (quote(str(params.get(name) or ""), safe="") for name in ("username", "password"))
    login = f"{user}:{password}@" if user or password else ""
    db = params.get("db") or 0
    if path := params.get("unix_socket_path"):
        return f"unix://{login}{path}?db={db}"
    return f"redis://{login}{params.get('host') or 'localhost'}:{params.get('port') or 6379}/{db}"


class ListSource:
    """A list from which batches are taken. Redis keeps a batch until `end_batch`, so another node can take it over."""

    def __init__(self, url: str, name: str, entries_max: int, lease_ms: int) -> None:
        """Set up a list at the key `name`; a batch that is not renewed for `lease_ms` goes to another node."""
        try:
            self._client = RedisClient(url)
        except ConfigError as error:
            raise _of_list(error) from None
        self._keys = ListKeys(name)
        self._entries_max = entries_max
        self._lease_ms = lease_ms
        self._next = uuid.uuid4().hex
        self._held = ""
        self._ended = ""

    async def take_next(self) -> EntryBatch | None:
        """Take the next batch; None if the list is empty. Raises ConfigError or TransientStoreError."""
        taken = await self._take_entries(self._next, self._entries_max)
        self._ended = ""
        if taken.wrong_type:
            raise ConfigError(
                f"the key {self._keys.list!r} is a {taken.wrong_type}: entries are taken from a list, set, zset or "
                f"stream; see redis_key and REDIS_START_URLS_KEY"
            )
        if taken.batch is not None:
            self._held = taken.batch.name
            if self._held == self._next:
                self._next = uuid.uuid4().hex
        return taken.batch

    def end_batch(self) -> None:
        self._ended, self._held = self._held, ""

    async def renew_hold(self) -> None:
        if self._held:
            await self._take_entries(self._held, 0)

    async def close(self) -> None:
        try:
            if self._ended:
                await self._take_entries(self._ended, 0)
        except (ConfigError, TransientStoreError):
            pass  # another node takes it over, and the seen check drops its URLs
        await self._client.close()

    async def _take_entries(self, batch: str, entries_max: int) -> TakenEntries:
        call = take_entries(
            self._keys, batch, self._lease_ms, self._ended, entries_max, BATCH_BYTES_MAX, ENTRY_BYTES_MAX
        )
        try:
            [taken] = await self._client.run([call])
            found: TakenEntries = taken
        except RewoundError as error:
            await self._client.accept_restart()
            raise TransientStoreError(str(error)) from error
        except ConfigError as error:
            raise _of_list(error) from None
        return found


def _of_list(error: ConfigError) -> ConfigError:
    return ConfigError(str(error).replace("BIGCRAWL_REDIS_URL", "REDIS_URL"))
