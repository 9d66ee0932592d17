"""The sizes of hosts, their grouping into domains, and their popularity.

Hosts of one PLD are consecutive; its popularity is independent of its number of hosts. Figures: IRLbot §7 got answers
from 117.6 million hosts of 33.8 million PLDs at 4.26 million addresses; in-degrees of PLDs fell off like a power law.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from bigcrawl_simweb.basics.power_law import PowerLaw, ScatteredOrder, mix_bits

_HOSTS_PER_PLD: Final = 3.5
_HOSTS_PER_ADDRESS: Final = 28
# Densities of about size ** -2.1, -2.4 and -2.1; the first and last as measured for in-degrees on the web.
_IN_DEGREE_EXPONENT: Final = 0.9
_HOSTS_EXPONENT: Final = 0.7
_PAGES_EXPONENT: Final = 0.9
_WORD: Final = 2**32
_CACHED_MAX: Final = 65_536
# Every second link from another host leads to the home page.
_FRONT_SHARE_PERCENT: Final = 50


class Population:
    """Hosts with `pages` pages in total, heavy-tailed; or, with `pages_per_host`, all equal in size and rank."""

    def __init__(self, seed: int, hosts: int, pages: int = 0, pages_per_host: int = 0) -> None:
        self.hosts = hosts
        self.plds = hosts if hosts < _HOSTS_PER_PLD else int(hosts / _HOSTS_PER_PLD)
        self.servers = max(1, hosts // _HOSTS_PER_ADDRESS)
        self._equal = pages_per_host
        self._pages = pages
        self._seed = seed
        self._sizes = PowerLaw(hosts, _PAGES_EXPONENT)
        self._size_order = ScatteredOrder(mix_bits(seed + 11), hosts)
        self._groups = PowerLaw(self.plds, _HOSTS_EXPONENT)
        self._in_degrees = PowerLaw(self.plds, _IN_DEGREE_EXPONENT)
        self._in_degree_order = ScatteredOrder(mix_bits(seed + 12), self.plds)
        self._server_ranks = PowerLaw(self.servers, _HOSTS_EXPONENT)
        self.pld_of = lru_cache(_CACHED_MAX)(self._pld_of)

    @property
    def is_equal(self) -> bool:
        return self._equal > 0

    def pages_of(self, host: int) -> int:
        return self._equal or self._sizes.share(self._size_order.place(host), self._pages)

    def largest_size(self) -> int:
        return self._equal or self._sizes.share(0, self._pages)

    def linked_host(self, draw: int) -> int:
        """Return the host of a link to anywhere, chosen by 32 random bits."""
        if self._equal:
            return draw % self.hosts
        pld = self.linked_pld(draw)
        return self.host_in(pld, mix_bits(draw))

    def linked_pld(self, draw: int) -> int:
        return self._in_degree_order.place(self._in_degrees.rank(draw / _WORD))

    def host_in(self, pld: int, draw: int) -> int:
        """Return a host of the PLD; for every second draw its first host, the bare domain or www."""
        first = self.first_host(pld)
        count = self.first_host(pld + 1) - first
        return first if draw & 1 else first + (draw >> 1) % count

    def is_front(self, draw: int) -> bool:
        return not self._equal and draw % 100 < _FRONT_SHARE_PERCENT

    def first_host(self, pld: int) -> int:
        return self._groups.sum_before(pld, self.hosts)

    def _pld_of(self, host: int) -> int:
        return self._groups.rank_at(host, self.hosts)

    def server_of(self, host: int) -> int:
        pld = self.pld_of(host)
        part = (host - self.first_host(pld)) // 64
        return self._server_ranks.rank(mix_bits(self._seed ^ mix_bits(pld * 4096 + part)) / 2**64)
