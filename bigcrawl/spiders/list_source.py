"""The list from which a spider takes entries, in a Redis of the user's or in that of the crawl."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from bigcrawl.exceptions import ConfigError, RewoundError, TransientStoreError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import ListKeys

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from bigcrawl.redisdb.scripts import EntryBatch, Taken

ENTRY_BYTES_MAX: Final = 4 << 20  # what a stored request may have
BATCH_BYTES_MAX: Final = 1 << 20
_PARAMS: Final = ("host", "port", "db", "username", "password", "unix_socket_path")


def redis_url_of(settings: BaseSettings) -> str | None:
    """Return the URL of the Redis that scrapy-redis' settings name; None if they name none."""
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
    """A list, from which batches are taken one after the other.

    What is taken stays in Redis until `end`, so that another node takes it if this one dies.
    """

    def __init__(self, url: str, name: str, entries_max: int, lease_ms: int) -> None:
        """Connect when the first batch is taken.

        Args:
            url: of the Redis.
            name: the key.
            entries_max: entries of a batch.
            lease_ms: after which time without a sign of life others take a batch over.

        Raises:
            ConfigError: the URL is no URL of a Redis.
        """
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

    def __repr__(self) -> str:
        return f"<ListSource {self._keys.list} of {self._client!r}>"

    async def next(self) -> EntryBatch | None:
        """Take the next batch. None if there is nothing to take now.

        Raises:
            ConfigError: the key has no entries, but is something else; or Redis refuses the login.
            TransientStoreError: Redis is away; the call may be repeated.
        """
        taken = await self._take(self._next, self._entries_max)
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

    def end(self) -> None:
        """The batch that was taken last is safe elsewhere. Redis forgets it with the next call."""
        self._ended, self._held = self._held, ""

    async def renew(self) -> None:
        """Keep the batch that was taken last for another lease. Raises what `next` raises."""
        if self._held:
            await self._take(self._held, 0)

    async def close(self) -> None:
        """Have Redis forget a batch that has ended, if it answers."""
        try:
            if self._ended:
                await self._take(self._ended, 0)
        except (ConfigError, TransientStoreError):
            pass  # its lease ends, and who takes it over finds that its URLs were seen
        await self._client.close()

    async def _take(self, batch: str, entries_max: int) -> Taken:
        call = scripts.take_entries(
            self._keys, batch, self._lease_ms, self._ended, entries_max, BATCH_BYTES_MAX, ENTRY_BYTES_MAX
        )
        try:
            [taken] = await self._client.run([call])
            found: Taken = taken
        except RewoundError as error:
            await self._client.accept_restart()
            raise TransientStoreError(str(error)) from error
        except ConfigError as error:
            raise _of_list(error) from None
        return found


def _of_list(error: ConfigError) -> ConfigError:
    """The error, about the Redis of the list."""
    return ConfigError(str(error).replace("BIGCRAWL_REDIS_URL", "REDIS_URL"))
