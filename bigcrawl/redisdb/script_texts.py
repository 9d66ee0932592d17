"""The scripts' texts as Redis has them, and the command that runs calls of one.

A script is loaded in a form that takes several calls at once: one EVALSHA for all calls of a round trip to it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.scripts import Call, Value

_STRINGS: Final = frozenset((str, bytes))
_FOR_MANY: Final = """
local function script(KEYS, ARGV)
<script>
end
local replies = {}
for i, call in ipairs(cmsgpack.unpack(ARGV[1])) do
  local _, reply = pcall(script, call[1], call[2])
  replies[i] = type(reply) == 'string' and {err = reply} or reply
end
return replies
"""
# The old types: Redis reads no others.
_pack = msgpack.Packer(use_bin_type=False).pack


@cache
def names() -> tuple[str, ...]:
    """Every script's name."""
    found = files("bigcrawl.redisdb").joinpath("lua").iterdir()
    return tuple(sorted(path.name.removesuffix(".lua") for path in found if path.name.endswith(".lua")))


@cache
def source(name: str) -> str:
    """The text of a script."""
    return files("bigcrawl.redisdb").joinpath("lua", f"{name}.lua").read_text("utf-8")


@cache
def source_for_many(name: str) -> str:
    """The text under which Redis has a script: it runs the script once for each of several calls.

    ARGV[1] is the msgpack of each call's keys and arguments, the arguments as strings, as Redis would hand them over.
    The reply has one of each call, an error reply where one failed. A command costs Redis and its client more than what
    it does: half of 35 us for the server alone. Of what is left, words one by one cost three times what they do packed.
    """
    return _FOR_MANY.replace("<script>", source(name))


@cache
def digest(name: str) -> str:
    """The SHA-1 that Redis knows a script by, in its form for many calls."""
    return hashlib.sha1(source_for_many(name).encode(), usedforsecurity=False).hexdigest()


@cache
def is_timed(name: str) -> bool:
    """Whether a script wants to know the time of the crawls."""
    return "ARGV[1] now_ms (0" in source(name)


def evalsha(calls: Sequence[Call[Any]], now_ms: int = 0) -> tuple[Value, ...]:
    """The command that runs calls of one script, in order; `now_ms` is told to those that were given no time.

    A call that goes alone declares its keys: a cluster finds its server by them.
    """
    tells = now_ms and is_timed(calls[0].name)
    packed = _pack([(call.keys, _words(call.args, now_ms if tells else 0)) for call in calls])
    keys = calls[0].keys if len(calls) == 1 else ()
    return ("EVALSHA", digest(calls[0].name), len(keys), *keys, packed)


def _words(args: Sequence[Value], now_ms: int) -> list[str | bytes]:
    """Arguments as Redis would make strings of them; the first one may be left for the time."""
    words: list[str | bytes] = [arg if arg.__class__ in _STRINGS else str(arg) for arg in args]
    if now_ms and not args[0]:
        words[0] = str(now_ms)
    return words
