"""Detects PLDs whose DNS answers for every name, which give a link farm unlimited hosts (step 10; IRLbot §1.2, §5).

Many hosts alone prove nothing about a PLD. So after a number of its hosts have been looked up, and again each time that
number doubles, the node looks up a made-up name. If it has an address, DNS answers for every name. The verdict goes to
the PLD's partition with the outcome of the next page fetched from the PLD, and lowers its budget like other signs of a
trap (`bigcrawl.scheduler.budgets.traps`). A node's counts are lost when it dies.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from bigcrawl.politeness.dns_cache import DnsError
from bigcrawl.scheduler.records.outcomes import pack_wildcard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bigcrawl.url.key import PldKey

logger = logging.getLogger(__name__)

PLDS_KEPT: Final = 20_000
"""PLDs whose look-ups a node counts, some 2 MB. The least recently looked up one is forgotten first, never a farm."""

NO_SUCH_NAME: Final = "not-found"
LABEL_BYTES: Final = 8  # 16 letters and digits, a name that no real host has


class WildcardDns:
    """Counts the look-ups of each PLD, and tests a made-up name for those that have many."""

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

    def __repr__(self) -> str:
        return f"<WildcardDns plds={len(self._looked_up)} asking={len(self._asking)} verdicts={len(self._verdicts)}>"

    def note(self, pld: str) -> None:
        """Count one more look-up in a PLD. Cost: 0.3 us, and a DNS look-up each time the PLD is tested."""
        count = self._looked_up.get(pld, 0) + 1
        self._looked_up[pld] = count
        self._looked_up.move_to_end(pld)
        if len(self._looked_up) > PLDS_KEPT:
            self._looked_up.popitem(last=False)
        if count >= self._hosts and _is_power_of_two(count / self._hosts):
            task = asyncio.get_running_loop().create_task(self._ask(pld), name=f"wildcard {pld}")
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    @property
    def has_verdicts(self) -> bool:
        """Whether there is a verdict to send."""
        return bool(self._verdicts)

    def take(self, pld: str) -> bytes:
        """Return, once, the verdict to send to the PLD's partition; usually empty."""
        return self._verdicts.pop(pld, b"")

    async def close(self) -> None:
        """Cancel the look-ups under way."""
        tasks = list(self._asking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, pld: str) -> None:
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
