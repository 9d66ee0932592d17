"""Units of budgets: hosts and directories of shared domains, each with an in-degree of its own.

Enough other PLDs must link to a unit before it has an account; its URLs count for its PLD until then. So a farm gets no
budgets for hosts that it makes up.

Source: IRLbot §5.2 (each site and even each subdirectory, based on their PLD in-degree).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.budgets.in_degrees import UNRANKED_BITS
from bigcrawl.scheduler.records.body import address_or_none
from bigcrawl.scheduler.rules.names import BELOW, EVERY, URL_PATTERN, parse_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray
    from bigcrawl.scheduler.records.queued_url import QueuedUrl
    from bigcrawl.url.key import PldKey

PRIVATE: Final = "private"
HOSTS_CACHED: Final = 1 << 15

_SETTING: Final = "BIGCRAWL_BUDGET_UNITS"


class BudgetUnits:
    """The units by the names of a setting; the empty name stands for none.

    `private_pld_of` returns a host's PLD where companies' suffixes count as public ones.
    """

    def __init__(
        self,
        names: Iterable[str],
        links_min: int,
        pld_of: Callable[[str], str],
        pld_key: Callable[[str], PldKey],
        private_pld_of: Callable[[str], str],
    ) -> None:
        self._links_min = links_min
        self._pld_of = pld_of
        self._pld_key = pld_key
        self._private_pld_of = private_pld_of
        given = set(names)
        self._has_private, self._has_every = PRIVATE in given, EVERY in given
        self._below: set[str] = set()
        self._directories: dict[str, list[str]] = {}
        for name in sorted(given - {PRIVATE, EVERY}, key=len, reverse=True):
            self._add(name)
        self._of_host = lru_cache(HOSTS_CACHED)(self._look_up)

    def __repr__(self) -> str:
        return f"<BudgetUnits below={len(self._below)} directories={len(self._directories)}>"

    def _add(self, name: str) -> None:
        host, slash, path = name.partition("/")
        is_below = host.startswith(BELOW)
        if host.startswith(URL_PATTERN) or is_below == bool(slash):
            raise ConfigError(
                f"{_SETTING} has {name!r}; must be the hosts below a name (*.blogs.example), the directories of a host "
                f"(www.homes.example/ or www.homes.example/~), {PRIVATE} or {EVERY}"
            )
        host = parse_name(host, _SETTING)
        if is_below:
            self._below.add(host.removeprefix(BELOW))
        else:
            self._directories.setdefault(host, []).append(f"/{path}")

    def name_of(self, host: str, url: str) -> str:
        """Return the name of the unit of a canonical URL; only directories need the URL."""
        if host in self._directories:
            target = url[url.find("/", url.find("//") + 2) :]
            for path in self._directories[host]:
                end = target.find("/", len(path))
                if target.startswith(path) and end > len(path):
                    return host + target[: end + 1]
        return self._of_host(host)

    def key_of(self, unit: str) -> int:
        return self._pld_key(f"unit {unit}") & ~UNRANKED_BITS  # no PLD contains a space

    def keys_of_hosts(self, hosts: Sequence[str], plds: KeyArray) -> KeyArray:
        """Return the key of each host's unit, or of its PLD if it is in none."""
        pairs = zip(hosts, plds.tolist(), strict=True)
        return np.array(
            [self.key_of(unit) if (unit := self._of_host(host)) else pld for host, pld in pairs], plds.dtype
        )

    def keys_of(self, urls: Sequence[QueuedUrl], plds: KeyArray) -> KeyArray:
        """Return the key of each URL's unit, or of its PLD if it is in none."""
        keys = plds.copy()
        for at, url in enumerate(urls):
            address = address_or_none(url.body)[0] if url.host in self._directories else ""
            if unit := self.name_of(url.host, address):
                keys[at] = self.key_of(unit)
        return keys

    def own_accounts(
        self, keys: KeyArray, plds: KeyArray, in_degrees_of: Callable[[KeyArray], InDegreeArray]
    ) -> tuple[npt.NDArray[np.intp], InDegreeArray]:
        """Return which keys are of units that have an account, and the in-degrees of these units."""
        at = np.flatnonzero(keys != plds)
        distinct, whose = np.unique(keys[at], return_inverse=True)
        in_degrees = in_degrees_of(distinct)[whose]
        has_account = in_degrees >= self._links_min
        return at[has_account], in_degrees[has_account]

    def _look_up(self, host: str) -> str:
        pld = self._pld_of(host)
        if len(host) == len(pld):
            return ""
        labels = host.split(".")
        for at in range(1, len(labels)):
            if ".".join(labels[at:]) in self._below:
                return self._below_pld(".".join(labels[at - 1 :]), pld)
        if self._has_private and (found := self._below_pld(self._private_pld_of(host), pld)):
            return found
        return self._below_pld(host.removeprefix("www."), pld) if self._has_every else ""

    @staticmethod
    def _below_pld(name: str, pld: str) -> str:
        return name if len(name) > len(pld) else ""
