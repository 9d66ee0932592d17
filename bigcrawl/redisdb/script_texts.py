"""The text of each script as Redis loads it, and the commands that run calls of scripts.

One EVALSHA runs all calls of a script in a round trip: a command per call would cost the server 17 µs each.
`scripts/<room>.py` calls `lua/<room>/<name>.lua`, whose header names the functions of `lua/prelude/` that are put in
front of it (decision 0065).
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
"""The only scripts that make a crawl larger in Redis, and that a server at maxmemory refuses."""

LOOKING: Final = frozenset(
    (
        *("look_crawl", "look_host", "look_orders", "look_partition", "look_pld", "look_url", "list_hosts"),
        *("read_queue", "sum_partitions", "tell_time", "watch_crawl"),
    )
)
"""Scripts that read. They have no flags: a server that accepts no writes refuses a script with flags."""

_PRELUDE: Final = "prelude"
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
CALLS_MAX: Final = 64  # so many calls block the server for one or two ms
BYTES_MAX: Final = 4 << 20
_WITHOUT_KEY: Final = frozenset(("PING", "SCRIPT", "INFO"))
# Redis reads only msgpack's old types.
_packer = msgpack.Packer(use_bin_type=False)
_pack = _packer.pack


@cache
def script_names() -> tuple[str, ...]:
    return tuple(sorted(_folder_of_scripts()))


@cache
def source(name: str) -> str:
    return _read_script(_folder_of_scripts()[name], name)


@cache
def preludes(name: str) -> tuple[str, ...]:
    line = re.search(r"^-- Uses: (.+)$", source(name), re.MULTILINE)
    return tuple(re.findall(r"prelude/(\w+)", line[1])) if line else ()


@cache
def source_for_many(name: str) -> str:
    """Return the text that Redis loads: it runs a script for each call in ARGV[1], msgpack, and replies with a list."""
    before = "".join(_read_script(_PRELUDE, prelude) for prelude in preludes(name))
    text = _FOR_MANY.replace("<preludes>", before).replace("<script>", source(name))
    return text if name in GROWING | LOOKING else _MAY_GO_ON_AT_MAXMEMORY + text


@cache
def script_digest(name: str) -> str:
    return hashlib.sha1(source_for_many(name).encode(), usedforsecurity=False).hexdigest()


@cache
def is_timed(name: str) -> bool:
    return "now_ms" in preludes(name)


@cache
def _folder_of_scripts() -> dict[str, str]:
    folders = (path for path in files("bigcrawl.redisdb").joinpath("lua").iterdir() if path.is_dir())
    return {
        path.name.removesuffix(".lua"): folder.name
        for folder in folders
        if folder.name != _PRELUDE
        for path in folder.iterdir()
        if path.name.endswith(".lua")
    }


@cache
def _read_script(folder: str, name: str) -> str:
    return files("bigcrawl.redisdb").joinpath("lua", folder, f"{name}.lua").read_text("utf-8")


class PackedCalls(NamedTuple):
    calls: list[Call[Any]]
    words: tuple[Value, ...]


def commands(calls: Sequence[Call[Any]], now_ms: int = 0, *, is_cluster: bool = False) -> list[PackedCalls]:
    calls_max = 1 if is_cluster else CALLS_MAX  # the keys of two calls may be on different servers
    made: list[PackedCalls] = []
    group: list[Call[Any]] = []
    packed: list[bytes] = []
    size = 0
    for call in calls:
        keys = call.keys if is_cluster else call.keys + call.beside
        args = [arg if type(arg) in _STRINGS else str(arg) for arg in call.args]
        if now_ms and is_timed(call.name) and not call.args[0]:
            args[0] = str(now_ms)  # the time, in place of a 0
        words = _pack((keys, args))
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
    keys = calls[0].keys if len(calls) == 1 else ()
    argument = b"".join((_packer.pack_array_header(len(packed)), *packed))
    return PackedCalls(calls, ("EVALSHA", script_digest(calls[0].name), len(keys), *keys, argument))


def key_of(words: Sequence[Value]) -> str | None:
    if words[0] in _WITHOUT_KEY:
        return None
    key = words[3 if words[0] == "EVALSHA" else 1]
    return key.decode() if isinstance(key, bytes) else str(key)
