"""The scripts' texts as Redis has them, and the command that runs calls of one.

A script is loaded in a form that takes several calls at once: one EVALSHA for all calls of a round trip to it. What
several scripts do alike is a function in `lua/prelude/`, in a file of its name. A script's header names those that it
uses, and their texts are put in front of it (docs/decisions/0065 says why Redis' own functions are not used).
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.scripts.call import Call, Value

GROWING: Final = frozenset({"append_batch", "admit_urls", "put_robots"})
"""Scripts that make a crawl larger in Redis; no other does. A server at maxmemory refuses these, and lets the others go
on: they free room, or take none that counts. So URLs end and move to the disk, and inboxes are trimmed."""

LOOKING: Final = frozenset({"look_partition", "tell_time"})
"""Scripts that commands call to look only. With flags, a server that takes no writes would refuse them whole. What they
write at maxmemory comes after a write that needs no memory; from there the server lets a script go on."""

_STRINGS: Final = frozenset((str, bytes))
_MAY_GO_ON_AT_MAXMEMORY: Final = "#!lua flags=allow-oom\n"
_FOR_MANY: Final = """<preludes>local function script(KEYS, ARGV)
<script>
end
local replies = {}
for i, call in ipairs(cmsgpack.unpack(ARGV[1])) do
  local is_done, reply = pcall(script, call[1], call[2])
  replies[i] = not is_done and type(reply) == 'string' and {err = reply} or reply
end
return replies
"""
CALLS_MAX: Final = 64  # of the same script in a command: one or two ms in which the server does nothing else
BYTES_MAX: Final = 4 << 20  # of a command: the server unpacks it as a whole, and refuses an argument of 512 MB
# The old types: Redis reads no others.
_packer = msgpack.Packer(use_bin_type=False)
_pack = _packer.pack


@cache
def names() -> tuple[str, ...]:
    """Every script's name."""
    found = files("bigcrawl.redisdb").joinpath("lua").iterdir()
    return tuple(sorted(path.name.removesuffix(".lua") for path in found if path.name.endswith(".lua")))


@cache
def source(name: str) -> str:
    """The text of a script."""
    return _read(f"{name}.lua")


@cache
def preludes(name: str) -> tuple[str, ...]:
    """The functions in `lua/prelude/` that a script uses, as its header says."""
    line = re.search(r"^-- Uses: (.+)$", source(name), re.MULTILINE)
    return tuple(re.findall(r"prelude/(\w+)", line[1])) if line else ()


@cache
def source_for_many(name: str) -> str:
    """The text under which Redis has a script: it runs the script once for each of several calls.

    ARGV[1] is the msgpack of each call's keys and arguments, the arguments as strings, as Redis would hand them over.
    The reply has one of each call, an error reply where one failed. A command costs Redis and its client more than what
    it does: half of 35 us for the server alone. Of what is left, words one by one cost three times what they do packed.
    """
    before = "".join(_read("prelude", f"{prelude}.lua") for prelude in preludes(name))
    text = _FOR_MANY.replace("<preludes>", before).replace("<script>", source(name))
    return text if name in GROWING | LOOKING else _MAY_GO_ON_AT_MAXMEMORY + text


@cache
def digest(name: str) -> str:
    """The SHA-1 that Redis knows a script by, in its form for many calls."""
    return hashlib.sha1(source_for_many(name).encode(), usedforsecurity=False).hexdigest()


@cache
def is_timed(name: str) -> bool:
    """Whether a script wants to know the time of the crawls."""
    return "now_ms" in preludes(name)


def _read(*path: str) -> str:
    return files("bigcrawl.redisdb").joinpath("lua", *path).read_text("utf-8")


class Command(NamedTuple):
    """One EVALSHA: the calls of one script that it runs, in order, and its words."""

    calls: list[Call[Any]]
    words: tuple[Value, ...]


def commands(calls: Sequence[Call[Any]], now_ms: int = 0, calls_max: int = CALLS_MAX) -> list[Command]:
    """The commands that run the calls in order: neighbours that call the same script go together.

    `now_ms` is told to those that were given no time. A call goes alone if it is larger than a command may be.
    """
    made: list[Command] = []
    group: list[Call[Any]] = []
    packed: list[bytes] = []
    size = 0
    for call in calls:
        words = _pack((call.keys, _words(call.args, now_ms if now_ms and is_timed(call.name) else 0)))
        size += len(words)
        if group and (group[0].name != call.name or len(group) >= calls_max or size > BYTES_MAX):
            made.append(_evalsha(group, packed))
            group, packed, size = [], [], len(words)
        group.append(call)
        packed.append(words)
    if group:
        made.append(_evalsha(group, packed))
    return made


def _evalsha(calls: list[Call[Any]], packed: list[bytes]) -> Command:
    """A call that goes alone declares its keys: a cluster finds its server by them."""
    keys = calls[0].keys if len(calls) == 1 else ()
    argument = b"".join((_packer.pack_array_header(len(packed)), *packed))
    return Command(calls, ("EVALSHA", digest(calls[0].name), len(keys), *keys, argument))


def _words(args: Sequence[Value], now_ms: int) -> list[str | bytes]:
    """Arguments as Redis would make strings of them; the first one may be left for the time."""
    words: list[str | bytes] = [arg if arg.__class__ in _STRINGS else str(arg) for arg in args]
    if now_ms and not args[0]:
        words[0] = str(now_ms)
    return words
