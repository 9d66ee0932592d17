"""What a crawl's Redis writes to its own log for each byte of URL text that goes through an inbox.

In a crawl DRUM's aux is the inbox: batches as outboxes send them wait in a Redis stream instead of an aux file.
Redis appends each once, and reads its log only when it starts, so that this is the whole cost until it rewrites
the log, when it writes what waits then once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.drum_cost.urls import TEXT_BYTES, offered
from bigcrawl.links import Links
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import partition_keys
from bigcrawl.scheduler.adapter.request_codec import links_encoder
from bigcrawl.scheduler.records.queued_url import encode_batch
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.redis_servers.script_world import ScriptRunner

if TYPE_CHECKING:
    from pathlib import Path

# Ten pages' links for one partition.
BATCH_URLS: Final = 600
# Whose web has URLs that compress as little as they do in the longest run that is compared.
_STREAM_URLS: Final = 10**7


def log_share(count: int) -> float:
    """Bytes of Redis' log for each byte of text, measured on a server of its own with `count` URLs."""
    keys = partition_keys("cost", 0)
    encode = links_encoder(Links(["http://a.example/"]), depth=1)
    with PrivateRedis() as server:
        runner = ScriptRunner(server.client, ["append_batch"])
        before = _log_bytes(server.directory)
        for number, batch in enumerate(offered(count, BATCH_URLS, of=_STREAM_URLS), start=1):
            urls = [
                encode(key, bytes(text).decode()) for key, text in zip(batch.keys.tolist(), batch.texts, strict=True)
            ]
            runner.run(scripts.append_batch(keys, "a", 1, number, encode_batch(urls), len(urls)))
        # What a client has been answered is written: Redis writes its log before it replies.
        return (_log_bytes(server.directory) - before) / (count * TEXT_BYTES)


def _log_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*.aof"))
