"""The scope: where a link must lead to be followed (step 1). Schemes make no difference.

    any      anywhere
    host     to the host of its page, or of a seed
    pld      to the pay-level domain (PLD) of its page, or of a seed
    prefix   below the directory of a seed: http://a.example/docs/index.html stands for a.example/docs/
    list     to what a list names

    in the list           covers
    www.example.com       that host
    example.com           all hosts of the PLD
    *.example.com         all hosts below that name, but not the name
    example.com/docs/     URLs of that host below that directory, and /docs; with the port if there is one

Seeds are in scope themselves. A seed that redirects to another host brings that host with it, because `host` and `pld`
also look at the page: it is in scope, so what is on its host is too. That makes the scope of a crawl without known
seeds: it stays on the hosts where it was begun.

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
"""The scopes that seeds make."""

WHERE: Final = "BIGCRAWL_SCOPE_LIST"
CACHED: Final = 1 << 14  # hosts, and directories


class Scope:
    """What is in scope.

    Args:
        kind: any, host, pld, prefix or list.
        names: what seeds or list stand for, as `seed_names` and `parse_names` return them. 8 bytes of memory each.
        pld: returns a host's PLD, by the crawl's own public-suffix list.

    Cost: 0.2 us for a link within its page's authority, 1 to 2 us for another host, 3 us with `prefix`. Made in 4 s for
    a million names.
    """

    def __init__(self, kind: str, names: Iterable[str], pld: Callable[[str], str]) -> None:
        self.kind = kind
        self._pld = pld
        self._depth = 0  # segments of the longest directory
        self._names = _Names(self._measured(names))
        self._covers_host = lru_cache(CACHED)(self._looks_up_host)
        self._covers_directory = lru_cache(CACHED)(self._looks_up_directory)

    def __repr__(self) -> str:
        return f"<Scope {self.kind} of {len(self._names)}>"

    def leads_from(self, page: str = "") -> Callable[[str], bool]:
        """Return the check of canonical URLs that were found on a page: whether they are in scope.

        `page` is the canonical URL of the page; empty if there is none.
        """
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

    def _measured(self, names: Iterable[str]) -> Iterable[str]:
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
        """Whether a URL is below a directory of the names; only as many of its segments count as those have."""
        parts = f"{_place(url)}/".split("/", self._depth)
        return self._covers_directory("/".join(parts[:-1]) + "/")

    def _looks_up_directory(self, directory: str) -> bool:
        at = 0
        while (at := directory.find("/", at) + 1) > 0:
            if directory[:at] in self._names:
                return True
        return False


class _Names:
    """A set of texts, as 64-bit keys with a secret of this process, so that nobody can make a name that is in it."""

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
    """Return what canonical URLs of seeds stand for in a scope: hosts, PLDs or directories; nothing in the others."""
    if kind == HOST:
        return map(host_of, seeds)
    if kind == PLD:
        return (pld(host_of(seed)) for seed in seeds)
    if kind == PREFIX:
        return (place[: place.rindex("/") + 1] for place in map(_place, seeds))
    return ()


def parse_names(written: Iterable[str], where: str = WHERE) -> list[str]:
    """Return the entries of a list in the form in which they are compared.

    Raises:
        ConfigError: an entry is neither a host, nor a PLD, nor "*." and a name, nor a host with a directory.
    """
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
        found = _place(canonicalize(written if mark else f"http://{place}"))
    except UrlError:
        found = ""
    if not found or "?" in place or "*" in place:
        raise ConfigError(f"{where} has {written!r}, which is no host with a directory, such as example.com/docs/")
    return found if found.endswith("/") else f"{found}/"


def _place(url: str) -> str:
    """Return host, port and path of a canonical URL."""
    authority = authority_of(url)
    path = url[url.index("/", 8) :].partition("?")[0]
    return authority[authority.index("//") + 2 :] + path


def _is_in_any(_: str) -> bool:
    return True
