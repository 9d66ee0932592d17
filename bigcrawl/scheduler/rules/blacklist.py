"""The blacklist: where the crawl must not go.

A covered URL stays on disk until its entry is removed. The frontier does not store which hosts lie in a range of
addresses; instead, a URL withheld for its address carries a *mark* that identifies all ranges and opened private
addresses in force, and is tried again once they differ.

Entries come from the settings and from a Redis hash, which may change during the crawl. The hash maps an entry to 1, or
to 0 to remove an entry of the settings. Source: PolyBot §4.4.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.records.body import address_or_none
from bigcrawl.scheduler.records.queued_url import RANGES_SHIFT, QueuedUrl
from bigcrawl.scheduler.rules.budget_rules import RuleBook
from bigcrawl.scheduler.rules.names import URL_PATTERN, parse_name
from bigcrawl.url.key import PUBLIC_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bigcrawl.scheduler.rules.budget_rules import Rule

ON: Final = b"1"
OFF: Final = b"0"
WHERE: Final = "BIGCRAWL_BLACKLIST"

_HELD_BACK: Final[Rule] = {"budget": 0}
_MARK_MAX: Final = (1 << 24) - 1
ADDRESSES_CACHED: Final = 8_192


class Blacklist:
    """The current entries; `opened` are the private addresses that the settings open, None for all of them."""

    def __init__(self, entries: Iterable[str], pld: Callable[[str], str], opened: str | None = None) -> None:
        self.entries = frozenset(entries)
        self._ranges = [_parse_range(entry) for entry in sorted(self.entries) if is_range(entry)]
        held_back = {entry: _HELD_BACK for entry in self.entries if not is_range(entry)}
        self._book = RuleBook(held_back, pld, PUBLIC_KEYS.of_pld)
        self.mark = _checksum_of(map(str, self._ranges), opened)
        self.digest = _checksum_of(self.entries, opened)
        self.of_address = lru_cache(ADDRESSES_CACHED)(self._of_address)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def has_addresses(self) -> bool:
        return bool(self._ranges)

    @property
    def withholding_check(self) -> Callable[[QueuedUrl], bool] | None:
        """The check whether a queued URL stays on disk; None if all URLs may pass."""
        if self.entries:
            return self.withholds
        return self._is_marked if self.mark else None

    def of_host(self, host: str) -> str | None:
        limit = self._book.for_host(host).get("budget")
        return limit.rule if limit else None

    def of_url(self, host: str, body: bytes) -> str | None:
        entry = self.of_host(host)
        if entry is not None or not self._book.needs_urls:
            return entry
        return self.of_canonical(host, address_or_none(body)[0])

    def of_canonical(self, host: str, url: str) -> str | None:
        limit = self._book.for_url(host, url).get("budget")
        return limit.rule if limit else None

    def withholds(self, url: QueuedUrl) -> bool:
        if self.mark and self._is_marked(url):
            return True
        return self.of_url(url.host, url.body) is not None

    def mark_flags(self, flags: int, *, by_address: bool) -> int:
        return flags & ((1 << RANGES_SHIFT) - 1) | (self.mark << RANGES_SHIFT if by_address else 0)

    def _is_marked(self, url: QueuedUrl) -> bool:
        return url.flags >> RANGES_SHIFT == self.mark

    def _of_address(self, address: str) -> str | None:
        try:
            parsed = ip_address(address)
        except ValueError:
            return None
        return next((str(network) for network in self._ranges if parsed in network), None)


def parse_entries(written: Iterable[str], where: str = WHERE) -> frozenset[str]:
    return frozenset(parse_entry(entry, where) for entry in written)


def parse_entry(written: str, where: str = WHERE) -> str:
    written = written.strip()
    if not written.startswith(URL_PATTERN):
        try:
            return str(_parse_range(written.strip("[]")))
        except ValueError:
            if "/" in written:
                raise ConfigError(
                    f"{where} has {written!r}, which is not a valid address range; must be one such as 203.0.113.0/24, "
                    f"or a host, a PLD, *. and a name, re: and a pattern"
                ) from None
    return parse_name(written, where)


def is_range(entry: str) -> bool:
    return "/" in entry and not entry.startswith(URL_PATTERN)


def in_force(settings: Iterable[str], live: Mapping[bytes, bytes]) -> tuple[frozenset[str], list[str]]:
    """Return the current entries, and a message for each invalid entry in Redis, which is ignored."""
    entries, faults = set(settings), []
    for name, value in live.items():
        try:
            entry = parse_entry(name.decode(), "the crawl's blacklist")
        except (ConfigError, UnicodeDecodeError) as fault:
            faults.append(str(fault))
            continue
        if value == OFF:
            entries.discard(entry)
        else:
            entries.add(entry)
    return frozenset(entries), faults


def _parse_range(written: str) -> IPv4Network | IPv6Network:
    return ip_network(written, strict=False)


def _checksum_of(entries: Iterable[str], opened: str | None) -> int:
    closed = sorted(entries) + ([] if opened is None else [f"all but {opened}"])
    return zlib.crc32(" ".join(closed).encode()) % _MARK_MAX + 1 if closed else 0


NOTHING: Final = Blacklist((), str)
