"""`--from scrapy-redis REDIS-URL`: the queue and the dupefilter of a scrapy-redis crawl.

Nothing is changed there. The dupefilter is read before the queue, so a request added meanwhile is in both or in
neither, and nothing is lost. scrapy-redis adds every queued request to the dupefilter, so the fingerprints of fetched
pages are those of the dupefilter without those of the queue.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl.commands.foreign.fingerprint_set import PRINTS_MAX, FetchedPrints
from bigcrawl.commands.foreign.pickled_requests import ENTRY_BYTES_MAX, StoredQueue, require_stopped
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import ListKeys
from bigcrawl.url.scrapy_fingerprint import SCRAPY_REDIS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import numpy.typing as npt

    from bigcrawl.commands.foreign.request_sender import RequestSender
    from bigcrawl.redisdb.scripts import QueuePart
    from bigcrawl.views.opened_crawl import OpenedCrawl

PART_BYTES_MAX: Final = 1 << 20
PART_ENTRIES_MAX: Final = 500
_SCAN_COUNT: Final = 5_000
_HEX: Final = 40


class ScrapyRedis:
    pauses = True  # fetched pages must be known before links lead to them

    def __init__(self, url: str, opts: argparse.Namespace) -> None:
        """Raise ConfigError if the spider is not named, or the URL does not lead to a Redis."""
        self._url = url
        keys = (opts.queue_key, opts.dupefilter_key)
        if not opts.spider and any("%(spider)s" in key for key in keys):
            raise ConfigError("say whose queue it is: --spider NAME, or --queue-key and --dupefilter-key")
        self._queue, self._dupefilter = (key.replace("%(spider)s", opts.spider) for key in keys)
        self._end = "left" if opts.stack else "right"

    def __repr__(self) -> str:
        return f"<ScrapyRedis {self._queue} {self._dupefilter}>"

    async def read_into(self, crawl: OpenedCrawl, sender: RequestSender) -> list[str]:
        """Send the queue to the inboxes, and the fingerprints of fetched pages to Redis; the crawl must not run."""
        await require_stopped(crawl)
        with _about_source():
            client = RedisClient(self._url)
        try:
            with _about_source():
                fetched = FetchedPrints(await self._read_prints(client))
            remarks = await self._read_queue(client, sender, fetched)
        finally:
            await client.close()
        await sender.flush()
        sender.notes.extend(await fetched.keep(crawl, self._dupefilter, SCRAPY_REDIS, "--dupefilter-key ''"))
        return remarks

    async def _read_prints(self, client: RedisClient) -> npt.NDArray[np.uint64]:
        """Return the first eight bytes of all fingerprints, as numbers, ascending."""
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
        rank = 0
        first: QueuePart | None = None
        with StoredQueue("scrapy-redis", sender, fetched) as queue:
            while (part := await self._part(client, rank)).entries:
                first = first or part
                for entry in part.entries:
                    rank += 1
                    await queue.send(f"{self._queue}, request {rank}", entry)
        if first is None:
            return [f"{self._queue} is empty, or not there: see --queue-key"]
        now = await self._part(client, 0)
        if now.length != first.length or now.entries[:1] != first.entries[:1]:
            remedy = "stop it, and import again; what is in already stays as it is"
            return [f"{self._queue} has changed meanwhile, because scrapy-redis is running: {remedy}"]
        return []

    async def _part(self, client: RedisClient, rank: int) -> QueuePart:
        bounds = (PART_ENTRIES_MAX, PART_BYTES_MAX, ENTRY_BYTES_MAX)
        with _about_source():
            part: QueuePart = await client.read(scripts.read_queue(ListKeys(self._queue), rank, self._end, *bounds))
        if part.kind not in ("list", "zset", "none"):
            raise ConfigError(f"{self._queue} is a {part.kind}: a queue of scrapy-redis is a list or zset")
        return part


@contextmanager
def _about_source() -> Iterator[None]:
    """Make the errors of a connection name the source's Redis."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(str(error).replace("BIGCRAWL_REDIS_URL", "the Redis to import from")) from None
