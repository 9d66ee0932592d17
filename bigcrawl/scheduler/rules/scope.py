"""The scope: where a link must lead to be followed (docs/guide/filters.md).

`host` and `pld` also accept links to the host or PLD of their page, so they include the host that a seed redirects to,
and work without known seeds.

Source: Heritrix's scopes (host, domain, SURT prefix).
"""

from __future__ import annotations

from functools import lru_cache
from secrets import token_bytes
from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.rules.names import BELOW, URL_PATTERN, parse_name
from bigcrawl.url.canonical import UrlError, authority_of, canonicalize, host_of
from bigcrawl.url.key import SECRET_BYTES, Keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ANY, HOST, PLD, PREFIX, LIST = ("any", "host", "pld", "prefix", "list")
OF_SEEDS: Final = (HOST, PLD, PREFIX)

WHERE: Final = "BIGCRAWL_SCOPE_LIST"
CACHED: Final = 1 << 14  # hosts, and directories


class CrawlScope:
    """The URLs in scope; `names` are those of `seed_names` or `parse_names`, and take 8 bytes of memory each."""

    def __init__(self, kind: str, names: Iterable[str], pld: Callable[[str], str]) -> None:
        self.kind = kind
        self._pld = pld
        self._depth = 0
        self._names = _NameSet(self._measure_depth(names))
        self._covers_host = lru_cache(CACHED)(self._looks_up_host)
        self._covers_directory = lru_cache(CACHED)(self._looks_up_directory)

    def leads_from(self, page: str = "") -> Callable[[str], bool]:
        """Return a check whether canonical URLs found on a page are in scope; `page` is empty without a page."""
        if self.kind == ANY:
            return _is_in_any
        origin = page[: page.index("/", 8) + 1] if page and self.kind in (HOST, PLD) else ""
        own = self._own_name(host_of(page)) if origin else ""

        def is_in(url: str) -> bool:
            if origin and url.startswith(origin):
                return True
            host = host_of(url)
            if own and self._own_name(host) == own:
                return True
            return self._covers_host(host) or (self._depth > 0 and self._is_below(url))

        return is_in

    def _own_name(self, host: str) -> str:
        return self._pld(host) if self.kind == PLD else host

    def _measure_depth(self, names: Iterable[str]) -> Iterable[str]:
        for name in names:
            self._depth = max(self._depth, name.count("/"))
            yield name

    def _looks_up_host(self, host: str) -> bool:
        if self.kind in (HOST, PLD):
            return self._own_name(host) in self._names
        labels = host.split(".")
        names = [host, self._pld(host), *(BELOW + ".".join(labels[at:]) for at in range(1, len(labels)))]
        return any(name in self._names for name in names)

    def _is_below(self, url: str) -> bool:
        parts = f"{_place_of(url)}/".split("/", self._depth)
        return self._covers_directory("/".join(parts[:-1]) + "/")

    def _looks_up_directory(self, directory: str) -> bool:
        at = 0
        while (at := directory.find("/", at) + 1) > 0:
            if directory[:at] in self._names:
                return True
        return False


class _NameSet:
    """A set of texts, as 64-bit keys with a secret of this process, so that no attacker can construct a collision."""

    def __init__(self, names: Iterable[str]) -> None:
        self._hash = Keys(token_bytes(SECRET_BYTES))
        self._keys = np.unique(self._hash.of_urls(names))

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, name: str) -> bool:
        key = np.uint64(self._hash.of_bytes(name.encode()))
        at = int(np.searchsorted(self._keys, key))
        return at < len(self._keys) and bool(self._keys[at] == key)


def seed_names(kind: str, seeds: Iterable[str], pld: Callable[[str], str]) -> Iterable[str]:
    """Return the hosts, PLDs or directories of canonical seeds, depending on the kind of scope."""
    if kind == HOST:
        return map(host_of, seeds)
    if kind == PLD:
        return (pld(host_of(seed)) for seed in seeds)
    if kind == PREFIX:
        return (place[: place.rindex("/") + 1] for place in map(_place_of, seeds))
    return ()


def parse_names(written: Iterable[str], where: str = WHERE) -> list[str]:
    """Return the entries of a list in the form in which they are compared."""
    return [_parse_name(name.strip(), where) for name in written]


def _parse_name(written: str, where: str) -> str:
    _, mark, place = written.rpartition("://")
    if written.startswith(URL_PATTERN):
        raise ConfigError(
            f"{where} has {written!r}; a scope has no patterns: must be a host, a PLD, *. and a name, or a host with a "
            "directory (example.com/docs/). BIGCRAWL_FILTER_PATHS takes patterns of paths"
        )
    if not mark and "/" not in place and ":" not in place:
        return parse_name(place, where)
    try:
        found = _place_of(canonicalize(written if mark else f"http://{place}"))
    except UrlError:
        found = ""
    if not found or "?" in place or "*" in place:
        raise ConfigError(f"{where} has {written!r}, which is no host with a directory, such as example.com/docs/")
    return found if found.endswith("/") else f"{found}/"


def _place_of(url: str) -> str:
    authority = authority_of(url)
    path = url[url.index("/", 8) :].partition("?")[0]
    return authority[authority.index("//") + 2 :] + path


def _is_in_any(_: str) -> bool:
    return True
