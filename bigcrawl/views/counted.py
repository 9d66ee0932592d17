"""Access to the page counts of an optional feature, from its module `counted`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.feature_list import modules_of

if TYPE_CHECKING:
    from types import ModuleType

NOTHING: Final = "nothing was counted: this installation has no feature that counts pages"


class NothingCountedError(BigcrawlError):
    def __init__(self) -> None:
        super().__init__(NOTHING)


def counts_reader() -> ModuleType | None:
    return next(iter(modules_of("counted")), None)
