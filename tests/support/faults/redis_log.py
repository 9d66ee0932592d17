"""What an AOF says of URLs: which have ended, and which were taken from their owner by another node."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple, Self

from bigcrawl.scheduler.adapter.request_codec import decode_body
from bigcrawl.scheduler.records.member import unpack_member
from bigcrawl.url.canonical import canonicalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class History(NamedTuple):
    """How often it happened to each URL.

    Attributes:
        ended: it was acknowledged: no longer taken, and not back in a queue.
        lost: it was in process on a node when another one claimed the partition, or when its owner claimed it again and
            died before it had said what became of it.
        taken: what is in process at the end: partition, owner and URL.
        claims: who has claimed each partition, in order.
    """

    ended: Counter[str]
    lost: Counter[str]
    taken: tuple[tuple[bytes, bytes, str], ...] = ()
    claims: Mapping[bytes, list[bytes]] = {}

    def __sub__(self, other: Self) -> History:
        """What happened here and not there."""
        return History(self.ended - other.ended, self.lost - other.lost)


class _Partition:
    """A partition as the commands so far have left it."""

    def __init__(self) -> None:
        self.owner = b""
        self.claims: list[bytes] = []
        self.taken: dict[bytes, str] = {}
        self.untaken: dict[bytes, str] = {}  # by this script
        self.returned: dict[bytes, str] = {}  # by this script, of a claim
        self.kept: dict[bytes, str] = {}  # likewise when the owner claims again: it still has them, or dies with them
        self.queued: set[bytes] = set()  # by this script

    def apply(self, name: bytes, key: bytes, words: list[bytes]) -> None:
        if name == b"HSET" and key == b"taken":
            self.taken |= {seq: url_of(record) for seq, record in zip(words[::2], words[1::2], strict=True)}
            for seq in words[::2]:
                self.kept.pop(seq, None)
        elif name == b"HDEL" and key == b"taken":
            self.untaken |= {seq: self.taken.pop(seq, "") for seq in words}
        elif name == b"ZADD" and key.startswith(b"back:"):
            self.queued.add(words[-1].partition(b":")[0])
        elif name == b"HSET" and key == b"owner" and words[0] == b"node":
            if words[1] == self.owner:
                self.kept |= self.returned
                self.returned = {}
            else:
                self.returned = self.kept | self.returned
                self.kept = {}
            self.owner = words[1]
            self.claims.append(words[1])
        elif name == b"HSET" and key == b"owner" and words[0] == b"generation":
            self.kept = {}  # the owner has said what became of them

    def drop_taken(self) -> None:
        self.returned |= self.taken
        self.taken = {}

    def end_script(self, history: History) -> None:
        history.ended.update(url for seq, url in self.untaken.items() if url and seq not in self.queued)
        history.lost.update(filter(None, self.returned.values()))
        self.untaken, self.returned, self.queued = {}, {}, set()


def read_history(commands: Iterable[list[bytes]]) -> History:
    """Replay the commands; those of one script stand between MULTI and EXEC."""
    history = History(Counter(), Counter())
    partitions: defaultdict[bytes, _Partition] = defaultdict(_Partition)
    for name, *words in (*commands, [b"EXEC"]):
        if name in (b"MULTI", b"EXEC"):
            for partition in partitions.values():
                partition.end_script(history)
        elif name in (b"DEL", b"UNLINK"):
            for prefix, _, key in (word.partition(b"}:") for word in words):
                if key == b"taken":
                    partitions[prefix].drop_taken()
        elif words:
            prefix, _, key = words[0].partition(b"}:")
            partitions[prefix].apply(name, key, words[1:])
    taken = tuple((name, each.owner, url) for name, each in partitions.items() for url in each.taken.values() if url)
    return history._replace(taken=taken, claims={name: each.claims for name, each in partitions.items()})


def url_of(record: bytes) -> str:
    """The URL of a taken URL's record; empty when there is no member."""
    member = record.split(b"\n", 3)[3]
    return canonicalize(decode_body(unpack_member(member).body)[0]) if member else ""
