"""The scripts' texts as Redis has them, and the command that runs calls of one.

A script is loaded in a form that takes several calls at once: one EVALSHA for all calls of a round trip to it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.redisdb.scripts import Call, Value

_FOR_MANY = """
local function script(KEYS, ARGV)
<script>
end
local replies, key, arg = {}, 0, 1 + 2 * tonumber(ARGV[1])
for i = 1, tonumber(ARGV[1]) do
  local keys, args = {}, {}
  for j = 1, tonumber(ARGV[2 * i]) do
    keys[j] = KEYS[key + j]
  end
  for j = 1, tonumber(ARGV[2 * i + 1]) do
    args[j] = ARGV[arg + j]
  end
  key, arg = key + #keys, arg + #args
  local _, reply = pcall(script, keys, args)
  replies[i] = type(reply) == 'string' and {err = reply} or reply
end
return replies
"""


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

    KEYS are those of all calls; ARGV is the number of calls, keys and arguments of each, and all arguments. The
    reply has one of each call, an error reply where one failed. A call costs Redis and its client more than what
    it does: half of 35 us for the server alone.
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
    """The command that runs calls of one script, in order; `now_ms` is told to those that were given no time."""
    sizes: list[Value] = []
    keys: list[Value] = []
    args: list[Value] = []
    tells = now_ms and is_timed(calls[0].name)
    for call in calls:
        sizes += (len(call.keys), len(call.args))
        keys += call.keys
        start = len(args)
        args += call.args
        if tells and not args[start]:
            args[start] = now_ms
    return ("EVALSHA", digest(calls[0].name), len(keys), *keys, len(calls), *sizes, *args)
