"""Maps a host to its pay-level domain (PLD), by the list of the crawl record, on which the partition depends."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Self

from ada_url import idna
from tldextract.cache import DiskCache
from tldextract.suffix_list import extract_tlds_from_suffix_list, get_suffix_lists

from bigcrawl.exceptions import ConfigError

HOSTS_CACHED_MAX = 100_000

# Separates registries' suffixes from companies' (github.io).
_PRIVATE_PART = "// ===BEGIN PRIVATE DOMAINS==="


class PublicSuffixes:
    def __init__(self, text: bytes, suffixes: frozenset[str], hosts_cached_max: int) -> None:
        self.text = text
        """Sorted, so that equal lists have equal bytes."""
        self._suffixes = suffixes
        self._labels_max = 1 + max(suffix.count(".") for suffix in suffixes)
        self._cached = lru_cache(hosts_cached_max)(self._look_up)

    def __repr__(self) -> str:
        return f"PublicSuffixes({len(self.text)} bytes, {self._cached.cache_info().currsize} hosts cached)"

    @classmethod
    def bundled(cls, *, private: bool = False, hosts_cached_max: int = HOSTS_CACHED_MAX) -> Self:
        """Return tldextract's list; `private` includes companies' suffixes, so that each github.io site is a PLD."""
        return cls.from_text(bundled_text(), private=private, hosts_cached_max=hosts_cached_max)

    @classmethod
    def from_text(cls, text: bytes, *, private: bool = False, hosts_cached_max: int = HOSTS_CACHED_MAX) -> Self:
        return cls(text, _parsed(text, private=private), hosts_cached_max)

    def with_private(self) -> Self:
        """Return this list with companies' suffixes treated as public."""
        return self.from_text(self.text, private=True)

    def pld(self, host: str) -> str:
        """Return the PLD of a host as spelled by `host_of`.

        IP literals, single labels and public suffixes are their own PLD. An unknown suffix counts as one label:
        `a.b.internal` belongs to `b.internal`.
        """
        return self._cached(host)

    def _look_up(self, host: str) -> str:
        if ":" in host or "." not in host or host.rpartition(".")[2].isdigit():
            return host  # only IPv4 literals end in digits
        labels = host.rstrip(".").split(".")
        suffix_labels = self._suffix_labels(labels)
        if not suffix_labels:
            return ".".join(host.rsplit(".", 2)[-2:])
        is_below = suffix_labels < len(labels) and labels[-suffix_labels - 1]
        return ".".join(labels[-suffix_labels - 1 :]) if is_below else host

    def _suffix_labels(self, labels: list[str]) -> int:
        """Return how many of the last labels are a public suffix; `*` stands for any label, `!` begins an exception."""
        found, name = 0, ""
        for count, label in enumerate(reversed(labels[-self._labels_max :]), 1):
            any_label, name = f"*.{name}", f"{label}.{name}" if name else label
            if name in self._suffixes:
                found = count
            elif any_label in self._suffixes:
                if "!" + name in self._suffixes:
                    return count - 1
                found = count
        return found


def _in_hosts(suffixes: list[str]) -> frozenset[str]:
    spelled = (".".join(map(_as_in_hosts, suffix.split("."))) for suffix in suffixes if not suffix.isascii())
    return frozenset((*suffixes, *spelled))


def _as_in_hosts(label: str) -> str:
    if label.isascii():
        return label
    mark = "!" if label.startswith("!") else ""
    # As `host_of` spells it, without the URL around it, which would take four times as long.
    return mark + spelled.decode() if (spelled := idna.encode(label.removeprefix(mark))) else label


@cache
def bundled_text() -> bytes:
    """Return tldextract's list in the form of the crawl record."""
    # Extractors would take a tenth of a crawl's start.
    found = get_suffix_lists(DiskCache(None), (), None, fallback_to_snapshot=True)
    registries, companies = map(set, found)
    companies -= registries
    return "\n".join([*sorted(registries), _PRIVATE_PART, *sorted(companies), ""]).encode()


@lru_cache(2)
def _parsed(text: bytes, *, private: bool) -> frozenset[str]:
    registries, companies = extract_tlds_from_suffix_list(text.decode("utf-8", "replace"))
    suffixes = registries + companies * private
    if not suffixes:
        raise ConfigError(f"a public-suffix list of {len(text)} bytes contains no suffix")
    return _in_hosts(suffixes)
