"""Finds the traits of trap-shaped URLs when they are discovered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.features.traps.settings import TrapConfig
from bigcrawl.features.traps.shape import UrlShapes, kinds_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from bigcrawl.config import Config


def traits_of(config: Config) -> Callable[[str, int], int] | None:
    traps = config.feature_config(TrapConfig)
    return UrlShapes(traps).traits if traps.share else None


def stats_of(traits: int) -> list[str]:
    return [f"bigcrawl/traps/{kind}" for kind in kinds_of(traits)]
