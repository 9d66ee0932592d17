"""The text of each script as Redis loads it, and the commands that run calls of scripts.

A script is loaded in a form that takes several calls, so that one EVALSHA runs all its calls of a round trip. Its file
is `lua/<room>/<name>.lua`, where `scripts/<room>.py` has the function that calls it. Code that several scripts share is
a function in `lua/prelude/`, in a file of its name. A script's header names the functions that it uses, and their texts
are put in front of it (docs/decisions/0065 says why Redis' own functions are not used).
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
"""The only scripts that make a crawl larger in Redis. A server at maxmemory refuses them, but runs all others, which
free memory or need almost none. So URLs still end or move to disk, and inboxes are trimmed."""

LOOKING: Final = frozenset({"look_crawl", "look_partition", "read_queue", "sum_partitions", "tell_time"})
"""Scripts that commands call only to read. They are loaded without flags, because a server that accepts no writes would
refuse a script with flags before it begins. At maxmemory their first write is one that needs no memory; after it, the
server lets the script go on writing."""

_PRELUDE: Final = "prelude"  # the folder in `lua/` whose files are no scripts
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
CALLS_MAX: Final = 64  # in one command: one or two ms in which the server does nothing else
BYTES_MAX: Final = 4 << 20  # in one command: the server unpacks it as a whole, and refuses an argument of 512 MB
_WITHOUT_KEY: Final = frozenset(("PING", "SCRIPT", "INFO"))
# msgpack's old types, because Redis reads no others.
_packer = msgpack.Packer(use_bin_type=False)
_pack = _packer.pack


@cache
def names() -> tuple[str, ...]:
    """Return the names of all scripts."""
    return tuple(sorted(_folders()))


@cache
def source(name: str) -> str:
    """Return the text of a script."""
    return _read(_folders()[name], name)


@cache
def preludes(name: str) -> tuple[str, ...]:
    """Return the functions in `lua/prelude/` that a script uses, according to its header."""
    line = re.search(r"^-- Uses: (.+)$", source(name), re.MULTILINE)
    return tuple(re.findall(r"prelude/(\w+)", line[1])) if line else ()


@cache
def source_for_many(name: str) -> str:
    """Return the text that Redis loads for a script: it runs the script once for each of several calls.

    ARGV[1] is msgpack of the calls: keys and arguments of each, the arguments as strings, as in an EVALSHA of one call.
    The reply has one item for each call; a failed call has an error reply. This is cheaper than one command for each
    call: a command alone costs the server about 17 us, half of what a small call takes. Packing the words costs a third
    of what sending them one by one does.
    """
    before = "".join(_read(_PRELUDE, prelude) for prelude in preludes(name))
    text = _FOR_MANY.replace("<preludes>", before).replace("<script>", source(name))
    return text if name in GROWING | LOOKING else _MAY_GO_ON_AT_MAXMEMORY + text


@cache
def digest(name: str) -> str:
    """Return the SHA-1 by which Redis knows a script, in its form for many calls."""
    return hashlib.sha1(source_for_many(name).encode(), usedforsecurity=False).hexdigest()


@cache
def is_timed(name: str) -> bool:
    """Whether a script needs the time of the crawls."""
    return "now_ms" in preludes(name)


@cache
def _folders() -> dict[str, str]:
    """Return the folder in `lua/` of each script, by the script's name."""
    folders = (path for path in files("bigcrawl.redisdb").joinpath("lua").iterdir() if path.is_dir())
    return {
        path.name.removesuffix(".lua"): folder.name
        for folder in folders
        if folder.name != _PRELUDE
        for path in folder.iterdir()
        if path.name.endswith(".lua")
    }


def _read(folder: str, name: str) -> str:
    return files("bigcrawl.redisdb").joinpath("lua", folder, f"{name}.lua").read_text("utf-8")


class PackedCalls(NamedTuple):
    """One EVALSHA: its words, and the calls that it runs, all of one script, in order."""

    calls: list[Call[Any]]
    words: tuple[Value, ...]


def commands(calls: Sequence[Call[Any]], now_ms: int = 0, calls_max: int = CALLS_MAX) -> list[PackedCalls]:
    """Return the commands that run the calls in order. Consecutive calls of one script share a command.

    `now_ms` is passed to calls without a time of their own. A call that is larger than `BYTES_MAX` goes alone.
    """
    made: list[PackedCalls] = []
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


def _evalsha(calls: list[Call[Any]], packed: list[bytes]) -> PackedCalls:
    """Return the command for a group. A call that goes alone declares its keys, by which a cluster finds its server."""
    keys = calls[0].keys if len(calls) == 1 else ()
    argument = b"".join((_packer.pack_array_header(len(packed)), *packed))
    return PackedCalls(calls, ("EVALSHA", digest(calls[0].name), len(keys), *keys, argument))


def key_of(words: Sequence[Value]) -> str | None:
    """Return the first key of a command, by which a cluster finds its server; None if it has none."""
    if words[0] in _WITHOUT_KEY:
        return None
    key = words[3 if words[0] == "EVALSHA" else 1]
    return key.decode() if isinstance(key, bytes) else str(key)


def _words(args: Sequence[Value], now_ms: int) -> list[str | bytes]:
    """Return arguments as strings, as Redis would convert them. A first argument of 0 is replaced by the time."""
    words: list[str | bytes] = [arg if arg.__class__ in _STRINGS else str(arg) for arg in args]
    if now_ms and not args[0]:
        words[0] = str(now_ms)
    return words
