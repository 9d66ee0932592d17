"""`--from scrapy-redis REDIS-URL`: the queue and the dupefilter of a scrapy-redis crawl.

Nothing is changed there. The dupefilter is read before the queue: a request added meanwhile is not taken for fetched.
scrapy-redis adds every queued request to the dupefilter, so the fingerprints of fetched pages are those of the
dupefilter without those of the queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl.commands.moving.importing import SourceRedis
from bigcrawl.exceptions import ConfigError
from bigcrawl.url.scrapy_fingerprint import SCRAPY_REDIS
from bigcrawl_foreign.fingerprint_set import PRINTS_MAX, FetchedPrints
from bigcrawl_foreign.pickled_requests import StoredQueue

if TYPE_CHECKING:
    import argparse

    import numpy.typing as npt

    from bigcrawl.commands.moving.importing import RequestSender

_SCAN_COUNT: Final = 5_000
_HEX: Final = 40


class ScrapyRedis:
    pauses = True  # fetched pages must be known before links lead to them

    def __init__(self, url: str, opts: argparse.Namespace) -> None:
        self._url = url
        keys = (opts.queue_key, opts.dupefilter_key)
        if not opts.spider and any("%(spider)s" in key for key in keys):
            raise ConfigError("name the queue: --spider NAME, or --queue-key and --dupefilter-key")
        self._queue, self._dupefilter = (key.replace("%(spider)s", opts.spider) for key in keys)
        self._is_stack = opts.stack

    def __repr__(self) -> str:
        return f"<ScrapyRedis {self._queue} {self._dupefilter}>"

    async def read_into(self, sender: RequestSender) -> list[str]:
        source = SourceRedis(self._url)
        try:
            fetched = FetchedPrints(await self._read_prints(source))
            remarks = await self._read_queue(source, sender, fetched)
        finally:
            await source.close()
        await sender.flush()
        sender.notes.extend(await fetched.store_prints(sender, self._dupefilter, SCRAPY_REDIS, "--dupefilter-key ''"))
        return remarks

    async def _read_prints(self, source: SourceRedis) -> npt.NDArray[np.uint64]:
        """Return the first eight bytes of all fingerprints, as numbers, ascending."""
        parts: list[npt.NDArray[np.uint64]] = []
        if not self._dupefilter:
            return np.empty(0, np.uint64)
        kind = (await source.command("TYPE", self._dupefilter)).decode()
        if kind not in ("set", "none"):
            raise self._no_fingerprints(f"a {kind}")
        if kind == "set" and (count := await source.command("SCARD", self._dupefilter)) > PRINTS_MAX:
            raise ConfigError(f"{self._dupefilter} has {count:,} fingerprints; {PRINTS_MAX:,} can be imported")
        cursor = b"0"
        while kind == "set":
            cursor, members = await source.command("SSCAN", self._dupefilter, cursor, "COUNT", _SCAN_COUNT)
            if any(len(member) != _HEX for member in members):
                raise self._no_fingerprints("a set of values that are not SHA-1 hashes")
            try:
                data = bytes.fromhex(b"".join(member[:16] for member in members).decode("ascii"))
            except ValueError:
                raise self._no_fingerprints("a set of values that are not SHA-1 hashes") from None
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

    async def _read_queue(self, source: SourceRedis, sender: RequestSender, fetched: FetchedPrints) -> list[str]:
        rank = 0
        first = part = await source.read_queue(self._queue, 0, is_stack=self._is_stack)
        with StoredQueue("scrapy-redis", sender, fetched) as queue:
            while part.entries:
                for entry in part.entries:
                    rank += 1
                    await queue.send_entry(f"{self._queue}, request {rank}", entry)
                part = await source.read_queue(self._queue, rank, is_stack=self._is_stack)
        if not first.entries:
            return [f"{self._queue} is empty, or not there: see --queue-key"]
        now = await source.read_queue(self._queue, 0, is_stack=self._is_stack)
        if now.length != first.length or now.entries[:1] != first.entries[:1]:
            remedy = "stop it, and import again; what is in already stays as it is"
            return [f"{self._queue} has changed meanwhile, because scrapy-redis is running: {remedy}"]
        return []
