"""Finds signs of traps in fetched pages and DNS, and sends them as marks to the partition of their PLD."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from isal import isal_zlib

from bigcrawl.features.traps.settings import TrapConfig
from bigcrawl.features.traps.verdicts import pack_same_content, pack_wildcard
from bigcrawl.politeness.dns_cache import DnsError
from bigcrawl.scheduler.budgets.policy import NO_POLICY
from bigcrawl.scheduler.handout.observers import Observer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bigcrawl.scheduler.handout.observers import NodeSide
    from bigcrawl.scheduler.records.held import HeldUrl
    from bigcrawl.url.key import PldKey


def observer_of(side: NodeSide) -> TrapSigns | None:
    config = side.config
    return TrapSigns(side) if config.feature_config(TrapConfig).share and config.budget.policy != NO_POLICY else None


class TrapSigns(Observer):
    def __init__(self, side: NodeSide) -> None:
        traps = side.config.feature_config(TrapConfig)
        self._pld_of = side.pld_of
        self._was_fetched = side.was_fetched
        self._same_content = SameContent(traps.same_share, side.pld_of, side.pld_key)
        self._wildcards = WildcardDns(traps.wildcard_hosts, side.look_up, side.pld_key)

    def record_answer(self, held: HeldUrl, body: bytes) -> bytes:
        if self._was_fetched(held):
            return b""  # a revisited page has its own content again, which proves nothing
        marks = self._same_content.record_page(held.host, body)
        if self._wildcards.verdicts:
            marks += self._wildcards.take_verdict(self._pld_of(held.host))
        return marks

    def record_look_up(self, pld: str) -> None:
        self._wildcards.count_host(pld)

    async def close(self) -> None:
        await self._wildcards.close()


logger = logging.getLogger(__name__)

WINDOW: Final = 64

PLDS_KEPT: Final = 20_000
"""PLDs whose windows a node remembers, about 5 MB; the least recently fetched is dropped first."""

_BITS: Final = 256


class _PageWindow:
    """A window of pages; the checksum of each page's content sets one of `bits`."""

    __slots__ = ("bits", "pages", "sent")

    def __init__(self) -> None:
        self.pages = 0
        self.bits = 0
        self.sent = -1


class SameContent:
    def __init__(self, share: float, pld_of: Callable[[str], str], pld_key: Callable[[str], PldKey]) -> None:
        self._least = math.ceil(share * WINDOW)
        self._pld_of = pld_of
        self._pld_key = pld_key
        self._seen: OrderedDict[str, _PageWindow] = OrderedDict()

    def record_page(self, host: str, body: bytes) -> bytes:
        pld = self._pld_of(host)
        seen = self._seen.get(pld)
        if seen is None:
            seen = self._seen[pld] = _PageWindow()
            if len(self._seen) > PLDS_KEPT:
                self._seen.popitem(last=False)
        else:
            self._seen.move_to_end(pld)
        seen.pages += 1
        seen.bits |= 1 << isal_zlib.crc32(body) % _BITS
        return self._end_window(pld, seen) if seen.pages >= WINDOW else b""

    def _end_window(self, pld: str, seen: _PageWindow) -> bytes:
        same = max(0, WINDOW - _estimate_distinct(seen.bits))
        verdict = same if same >= self._least else 0
        seen.pages = seen.bits = 0
        if bool(verdict) == seen.sent:
            return b""
        if verdict:
            logger.info(
                "%(pld)s is considered a trap: about %(same)d of its last %(window)d pages had the same content as "
                "other pages",
                {"pld": pld, "same": same, "window": WINDOW},
            )
        seen.sent = bool(verdict)
        return pack_same_content(self._pld_key(pld), verdict)


def _estimate_distinct(bits: int) -> int:
    """Estimate, by linear counting, how many different contents have set these bits."""
    free = _BITS - bits.bit_count()
    return round(-_BITS * math.log(free / _BITS)) if free else WINDOW


"""PLDs whose look-ups a node counts, about 2 MB; the least recent is dropped first, so a farm stays."""

NO_SUCH_NAME: Final = "not-found"
LABEL_BYTES: Final = 8  # 16 hexadecimal digits, a name that no real host has


class WildcardDns:
    def __init__(
        self, hosts: int, lookup: Callable[[str], Awaitable[list[str]]], pld_key: Callable[[str], PldKey]
    ) -> None:
        """Test a PLD once `hosts` of its hosts were looked up. `lookup` raises DnsError if there is no address."""
        self._hosts = hosts
        self._lookup = lookup
        self._pld_key = pld_key
        self._look_up_address: OrderedDict[str, int] = OrderedDict()
        self._asking: set[asyncio.Task[None]] = set()
        self.verdicts: dict[str, bytes] = {}

    def count_host(self, pld: str) -> None:
        count = self._look_up_address.get(pld, 0) + 1
        self._look_up_address[pld] = count
        self._look_up_address.move_to_end(pld)
        if len(self._look_up_address) > PLDS_KEPT:
            self._look_up_address.popitem(last=False)
        if count >= self._hosts and _is_power_of_two(count / self._hosts):
            task = asyncio.get_running_loop().create_task(self._test_pld(pld), name=f"wildcard {pld}")
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    def take_verdict(self, pld: str) -> bytes:
        return self.verdicts.pop(pld, b"")

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
            logger.info(text, {"pld": pld, "hosts": self._look_up_address.get(pld, 0)})
        self.verdicts[pld] = pack_wildcard(self._pld_key(pld), found=found)


def _is_power_of_two(ratio: float) -> bool:
    return ratio.is_integer() and int(ratio).bit_count() == 1
