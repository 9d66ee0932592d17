"""Detects PLDs whose DNS has an address for any name, by random names, unlimited hosts of a farm (IRLbot §1.2, §5)."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from bigcrawl.features.traps.verdicts import pack_wildcard
from bigcrawl.politeness.dns_cache import DnsError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bigcrawl.url.key import PldKey

logger = logging.getLogger(__name__)

PLDS_KEPT: Final = 20_000
"""PLDs whose look-ups a node counts, about 2 MB; the least recent is dropped first, so a farm stays."""

NO_SUCH_NAME: Final = "not-found"
LABEL_BYTES: Final = 8  # 16 hexadecimal digits, a name that no real host has


class WildcardDns:
    def __init__(
        self, hosts: int, lookup: Callable[[str], Awaitable[list[str]]], pld_key: Callable[[str], PldKey]
    ) -> None:
        """Test a PLD after `hosts` of its hosts were looked up. `lookup` raises DnsError if there is no address."""
        self._hosts = hosts
        self._lookup = lookup
        self._pld_key = pld_key
        self._looked_up: OrderedDict[str, int] = OrderedDict()
        self._asking: set[asyncio.Task[None]] = set()
        self._verdicts: dict[str, bytes] = {}

    def count_host(self, pld: str) -> None:
        count = self._looked_up.get(pld, 0) + 1
        self._looked_up[pld] = count
        self._looked_up.move_to_end(pld)
        if len(self._looked_up) > PLDS_KEPT:
            self._looked_up.popitem(last=False)
        if count >= self._hosts and _is_power_of_two(count / self._hosts):
            task = asyncio.get_running_loop().create_task(self._test_pld(pld), name=f"wildcard {pld}")
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    @property
    def has_verdicts(self) -> bool:
        return bool(self._verdicts)

    def take_verdict(self, pld: str) -> bytes:
        return self._verdicts.pop(pld, b"")

    async def close(self) -> None:
        tasks = list(self._asking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _test_pld(self, pld: str) -> None:
        try:
            found = bool(await self._lookup(f"{secrets.token_hex(LABEL_BYTES)}.{pld}"))
        except DnsError as error:
            if error.reason != NO_SUCH_NAME:
                return  # DNS gave no verdict
            found = False
        if found:
            text = "%(pld)s is taken for a trap: DNS has an address for any name of it, and %(hosts)d were looked up"
            logger.info(text, {"pld": pld, "hosts": self._looked_up.get(pld, 0)})
        self._verdicts[pld] = pack_wildcard(self._pld_key(pld), found=found)


def _is_power_of_two(ratio: float) -> bool:
    return ratio.is_integer() and int(ratio).bit_count() == 1
