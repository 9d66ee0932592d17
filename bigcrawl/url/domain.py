"""Maps a host to its pay-level domain (PLD): the name somebody paid a registry for.

The PLD decides which partition a URL belongs to, and the public-suffix list decides the PLD, so every node of a crawl
must use the same copy of the list. The crawl record keeps that copy as `PublicSuffixes.text`, and a node that joins
builds its own from it with `from_text`. Nothing here opens a connection or leaves a file behind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Self

from tldextract.cache import DiskCache
from tldextract.suffix_list import extract_tlds_from_suffix_list, get_suffix_lists

from bigcrawl.exceptions import ConfigError
from bigcrawl.url.canonical import UrlError, canonicalize, host_of

HOSTS_CACHED_MAX = 100_000
"""Hosts whose PLDs are cached: about 20 MB. A look-up then takes 0.1 µs, otherwise 1 µs."""

# The line in the list that separates the registries' suffixes from those of companies (github.io).
_PRIVATE_PART = "// ===BEGIN PRIVATE DOMAINS==="


class PublicSuffixes:
    """A copy of the public-suffix list, and the PLDs it defines."""

    def __init__(self, text: bytes, root: _Labels, hosts_cached_max: int) -> None:
        self.text = text
        """The list, one suffix a line, sorted, so that equal lists have equal bytes. About 130 KB, 42 packed."""
        self._root = root
        self._cached = lru_cache(hosts_cached_max)(self._look_up)

    def __repr__(self) -> str:
        return f"PublicSuffixes({len(self.text)} bytes, {self._cached.cache_info().currsize} hosts cached)"

    @classmethod
    def bundled(cls, *, private: bool = False, hosts_cached_max: int = HOSTS_CACHED_MAX) -> Self:
        """Return the list of the installed tldextract.

        Args:
            private: whether suffixes of companies count too, so that each github.io site is a PLD.
            hosts_cached_max: how many hosts' PLDs to cache.
        """
        return cls.from_text(_bundled_text(), private=private, hosts_cached_max=hosts_cached_max)

    @classmethod
    def from_text(cls, text: bytes, *, private: bool = False, hosts_cached_max: int = HOSTS_CACHED_MAX) -> Self:
        """Return a list made from the text of another one, or from a file of publicsuffix.org.

        Raises:
            ConfigError: the text contains no suffixes.
        """
        return cls(text, _parsed(text, private=private), hosts_cached_max)

    def pld(self, host: str) -> str:
        """Return the PLD of a host, in the spelling that `host_of` returns.

        IP literals, single labels and public suffixes are their own PLD. A suffix missing from the list counts as one
        label, which is the list's own rule: `a.b.internal` belongs to `b.internal`.
        """
        return self._cached(host)

    def _look_up(self, host: str) -> str:
        if ":" in host or "." not in host or host.rpartition(".")[2].isdigit():
            return host  # in a canonical URL, only IPv4 literals have a last label of digits
        labels = host.rstrip(".").split(".")
        suffix_labels = self._root.suffix_labels(labels)
        if not suffix_labels:
            return ".".join(host.rsplit(".", 2)[-2:])
        is_below = suffix_labels < len(labels) and labels[-suffix_labels - 1]
        return ".".join(labels[-suffix_labels - 1 :]) if is_below else host


@dataclass(slots=True)
class _Labels:
    """The suffixes of a list as a tree: from a label to those that stand before it."""

    before: dict[str, _Labels] = field(default_factory=dict)
    is_suffix: bool = False

    def add(self, suffix: str) -> None:
        """Add a suffix; `*` stands for any label, `!` begins one that is an exception to it."""
        node = self
        for label in reversed(suffix.split(".")):
            node = node.before.setdefault(label, _Labels())
        node.is_suffix = True

    def suffix_labels(self, labels: list[str]) -> int:
        """Return how many of the last labels are a public suffix; 0 if the list has none for them.

        Labels are compared as they stand: decoding one of a host takes up to 100 µs, and a page may name 20,000.
        """
        node, found = self, 0
        for count, label in enumerate(reversed(labels), 1):
            below = node.before.get(label)
            if below is None:
                if "*" in node.before:
                    return count - 1 if "!" + label in node.before else count
                break
            node = below
            if node.is_suffix:
                found = count
        return found


def _tree(suffixes: list[str]) -> _Labels:
    """Return suffixes as a tree, each as it is written and as the hosts of canonical URLs have it."""
    root = _Labels()
    for suffix in suffixes:
        root.add(suffix)
        if not suffix.isascii():
            root.add(".".join(map(_as_in_hosts, suffix.split("."))))
    return root


def _as_in_hosts(label: str) -> str:
    """Return the A-label of a label; one that is ASCII, or that no host can have, as it is."""
    if label.isascii():
        return label
    mark = "!" if label.startswith("!") else ""
    try:
        return mark + host_of(canonicalize(f"http://{label.removeprefix(mark)}/"))
    except UrlError:
        return label


@cache
def _bundled_text() -> bytes:
    # Not by extractors, which make a tree of the list, twice: a tenth of a crawl's start.
    found = get_suffix_lists(DiskCache(None), (), None, fallback_to_snapshot=True)
    registries, companies = map(set, found)
    companies -= registries
    return "\n".join([*sorted(registries), _PRIVATE_PART, *sorted(companies), ""]).encode()


@lru_cache(2)
def _parsed(text: bytes, *, private: bool) -> _Labels:
    """Parse a list. The crawls of a process usually share one."""
    registries, companies = extract_tlds_from_suffix_list(text.decode("utf-8", "replace"))
    suffixes = registries + companies * private
    if not suffixes:
        raise ConfigError(f"a public-suffix list of {len(text)} bytes contains no suffix")
    return _tree(suffixes)
