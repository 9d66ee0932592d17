"""`--from scrapy-redis REDIS-URL`: the queue and the dupefilter of a scrapy-redis crawl.

Nothing is changed there. The dupefilter is read before the queue, so what is added to the queue meanwhile is in both or
in neither, and nothing is lost.

Every request of the queue was noted in the dupefilter when it was queued. So the fingerprints of what was fetched are
those of the dupefilter without those of the queue.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bigcrawl.commands.foreign.fingerprint_set import FetchedPrints
from bigcrawl.commands.foreign.pickled_requests import PickledRequests, UnreadableError
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import ListKeys

if TYPE_CHECKING:
    import argparse

    import numpy.typing as npt

    from bigcrawl.commands.foreign.request_sender import RequestSender
    from bigcrawl.commands.opened_crawl import OpenedCrawl

ENTRY_BYTES_MAX: Final = 4 << 20  # what a stored request may have
PART_BYTES_MAX: Final = 1 << 20
PART_ENTRIES_MAX: Final = 500
PRINTS_MAX: Final = 100_000_000  # 800 MB in the command, some 950 MB in Redis
_SCAN_COUNT: Final = 5_000
_HEX: Final = 40


class ScrapyRedis:
    """A scrapy-redis crawl that is imported."""

    def __init__(self, url: str, opts: argparse.Namespace) -> None:
        """Name the keys.

        Raises:
            ConfigError: the spider is not named, or the URL is none of a Redis.
        """
        self._url = url
        keys = (opts.queue_key, opts.dupefilter_key)
        if not opts.spider and any("%(spider)s" in key for key in keys):
            raise ConfigError("say whose queue it is: --spider NAME, or --queue-key and --dupefilter-key")
        self._queue, self._dupefilter = (key.replace("%(spider)s", opts.spider) for key in keys)
        self._end = "left" if opts.stack else "right"

    def __repr__(self) -> str:
        return f"<ScrapyRedis {self._queue} {self._dupefilter}>"

    async def read_into(self, crawl: OpenedCrawl, sender: RequestSender) -> list[str]:
        """Send the queue to the inboxes, and what was fetched to Redis. Return lines about what may be missing.

        Raises:
            ConfigError: a key is of another type than scrapy-redis', or the crawl is running.
            TransientStoreError: one of the two Redis does not answer; the import may be repeated.
        """
        if await crawl.nodes():
            raise ConfigError(f"crawl {crawl.config.crawl.name!r} is running: stop it, import, and start it again")
        try:
            client = RedisClient(self._url)
        except ConfigError as error:
            raise _of_source(error) from None
        try:
            await client.ping()
            fetched = FetchedPrints(await self._read_prints(client))
            remarks = await self._read_queue(client, sender, fetched)
        except ConfigError as error:
            raise _of_source(error) from None
        finally:
            await client.close()
        await sender.flush()
        return [*remarks, *await fetched.keep(crawl, self._dupefilter)]

    async def _read_prints(self, client: RedisClient) -> npt.NDArray[np.uint64]:
        """The first eight bytes of all fingerprints, as numbers, ascending."""
        parts: list[npt.NDArray[np.uint64]] = []
        if not self._dupefilter:
            return np.empty(0, np.uint64)
        kind = (await client.command("TYPE", self._dupefilter)).decode()
        if kind not in ("set", "none"):
            raise self._no_fingerprints(f"a {kind}")
        if kind == "set" and (count := await client.command("SCARD", self._dupefilter)) > PRINTS_MAX:
            raise ConfigError(f"{self._dupefilter} has {count:,} fingerprints; {PRINTS_MAX:,} can be imported")
        cursor = b"0"
        while kind == "set":
            cursor, members = await client.command("SSCAN", self._dupefilter, cursor, "COUNT", _SCAN_COUNT)
            if any(len(member) != _HEX for member in members):
                raise self._no_fingerprints("a set of other things")
            try:
                data = bytes.fromhex(b"".join(member[:16] for member in members).decode("ascii"))
            except ValueError:
                raise self._no_fingerprints("a set of other things") from None
            parts.append(np.frombuffer(data, dtype=">u8").astype(np.uint64))
            if int(cursor) == 0:
                break
        return np.unique(np.concatenate([*parts, np.empty(0, np.uint64)]))

    def _no_fingerprints(self, what: str) -> ConfigError:
        return ConfigError(
            f"{self._dupefilter} is {what}, and no set of SHA-1 fingerprints as scrapy-redis' RFPDupeFilter keeps it: "
            f"name the key with --dupefilter-key, or import without it, --dupefilter-key ''; then pages may be fetched "
            f"again"
        )

    async def _read_queue(self, client: RedisClient, sender: RequestSender, fetched: FetchedPrints) -> list[str]:
        rank, length = 0, None
        with PickledRequests() as requests:
            while True:
                call = scripts.read_queue(
                    ListKeys(self._queue), rank, self._end, PART_ENTRIES_MAX, PART_BYTES_MAX, ENTRY_BYTES_MAX
                )
                part = await client.read(call)
                if part.kind not in ("list", "zset", "none"):
                    raise ConfigError(f"{self._queue} is a {part.kind}: a queue of scrapy-redis is a list or zset")
                length = part.length if length is None else length
                if not part.entries:
                    break
                for entry in part.entries:
                    await self._send(entry, rank, requests, sender, fetched)
                    rank += 1
        if part.length != length:
            counts = f"{length:,} requests at first and {part.length:,} at last"
            remedy = "stop it, and import again; what is in already stays as it is"
            return [f"{self._queue} had {counts}, because scrapy-redis is running: {remedy}"]
        return []

    async def _send(
        self,
        entry: bytes | int,
        rank: int,
        requests: PickledRequests,
        sender: RequestSender,
        fetched: FetchedPrints,
    ) -> None:
        where = f"{self._queue}, request {rank + 1}"
        if isinstance(entry, int):
            sender.leave_out(where, f"it has {entry:,} bytes; {ENTRY_BYTES_MAX:,} may be")
            return
        try:
            fields: dict[str, Any] = await asyncio.to_thread(requests.read, entry)
        except UnreadableError as error:
            sender.leave_out(where, str(error))
            return
        name = f"scrapy-redis:{hashlib.sha1(entry, usedforsecurity=False).hexdigest()}"
        if await sender.send_request(where, fields, name) and not fields.get("dont_filter"):
            fetched.note_waiting(fields)


def _of_source(error: ConfigError) -> ConfigError:
    """The error, about the Redis that is imported from."""
    return ConfigError(str(error).replace("BIGCRAWL_REDIS_URL", "the Redis to import from"))
