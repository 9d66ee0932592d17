"""Traits of URLs that features find at discovery, as bits of the flags.

Only one feature may have a module `url` that returns a function from `traits_of`: there are 17 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.feature_list import modules_of
from bigcrawl.scheduler.records.queued_url import LISTED_SHIFT, TRAITS_SHIFT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bigcrawl.config import Config

    Traits = Callable[[str, int], int]

_MASK = (1 << LISTED_SHIFT - TRAITS_SHIFT) - 1


def traits_of(config: Config) -> Traits | None:
    found = (module.traits_of(config) for module in modules_of("url"))
    return next((traits for traits in found if traits is not None), None)


def stats_of(flags: int) -> Iterable[str]:
    traits = flags >> TRAITS_SHIFT & _MASK
    return [stat for module in modules_of("url") for stat in module.stats_of(traits)] if traits else ()
