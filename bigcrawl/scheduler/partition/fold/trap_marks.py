"""Which PLDs look like traps by the new URLs of a step, which are mirrors, and what that costs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bigcrawl.scheduler.budgets.lowered import divided, divisors_of
from bigcrawl.scheduler.budgets.mirrors import MirrorChange, Mirrors, told_verdict_of
from bigcrawl.scheduler.budgets.traps import TrapChange, Traps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import Allowances
    from bigcrawl.scheduler.budgets.lowered import DivisorArray
    from bigcrawl.scheduler.budgets.mirrors import MirrorRules
    from bigcrawl.scheduler.budgets.traps import TrapRules
    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.records.queued_url import QueuedUrl


class TrapMarks:
    """Notes the shapes of a step's new URLs, and lowers budgets.

    Attributes:
        changes: PLDs that the step has caught as traps, or freed.
        mirror_changes: PLDs found to be mirrors, or none any longer, since URLs of theirs were last placed.
    """

    def __init__(self, tables: Tables, rules: TrapRules, mirrors: MirrorRules, pld_of: Callable[[str], str]) -> None:
        self._tables = tables
        self._traps = Traps(tables.traps, rules)
        self._mirrors = Mirrors(tables.mirrors, mirrors)
        self._pld_of = pld_of
        self.changes: tuple[TrapChange, ...] = ()
        self.mirror_changes: tuple[MirrorChange, ...] = ()

    def __repr__(self) -> str:
        return f"<TrapMarks {self._traps!r} changes={len(self.changes)}>"

    def note(self, urls: Sequence[QueuedUrl], plds: KeyArray) -> None:
        """Count new URLs by their shape, and weigh their PLDs."""
        noted = self._traps.note(urls, plds)
        if noted is not None:
            self._tables.commit(self._tables.traps, self._tables.traps.put(noted.plds, noted.records))
            self.changes += tuple(TrapChange(self._pld_of(urls[at].host), verdict) for at, verdict in noted.changes)

    def tell_mirrors(self, urls: Sequence[QueuedUrl], plds: KeyArray) -> None:
        """Note the names of PLDs whose verdict was given when none of their URLs was at hand, to be told once."""
        untold = self._mirrors.untold(plds)
        if untold is not None:
            keys, records = untold
            self._tables.commit(self._tables.mirrors, self._tables.mirrors.put(keys, records))
            names = {int(pld): self._pld_of(url.host) for url, pld in zip(urls, plds, strict=True)}
            self.mirror_changes += tuple(
                MirrorChange(names[key], told_verdict_of(record))
                for key, record in zip(keys.tolist(), records, strict=True)
            )

    def divisors(self, plds: KeyArray) -> DivisorArray | None:
        """Return the divisors of PLDs' budgets, or None if no budget is lowered."""
        return divisors_of(self._traps, self._mirrors, plds)

    def lowered(self, allowed: Allowances, plds: KeyArray) -> Allowances:
        """Lower the budgets of traps and mirrors, except accounts and budgets set by hand."""
        divisors = self.divisors(plds)
        if divisors is None:
            return allowed
        is_free = allowed.accounts != plds
        if allowed.by_hand is not None:
            is_free |= allowed.by_hand
        return allowed._replace(budgets=divided(allowed.budgets, np.where(is_free, 1, divisors).astype(np.uint32)))
