"""In which language a page says that it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from bigcrawl.features.languages.fold import FOREIGN, OURS
from bigcrawl.features.languages.settings import LanguageConfig
from bigcrawl.scheduler.handout.observers import Observer
from bigcrawl.scheduler.records.outcomes import pack_mark

if TYPE_CHECKING:
    from bigcrawl.scheduler.handout.observers import NodeSide
    from bigcrawl.scheduler.records.held import HeldUrl

_READ_BYTES: Final = 1_024
_language_of = re.compile(rb"<html\b[^>]{0,200}\blang=[\"']?([a-zA-Z]{2,3})").search


def observer_of(side: NodeSide) -> PageLanguages | None:
    wanted = side.config.feature_config(LanguageConfig).wanted
    return PageLanguages(side, frozenset(wanted)) if wanted else None


class PageLanguages(Observer):
    """Tells the partition of a PLD, with each page that names its language, whether it is one that is wanted."""

    def __init__(self, side: NodeSide, wanted: frozenset[str]) -> None:
        self._side = side
        self._wanted = wanted

    def record_answer(self, held: HeldUrl, body: bytes) -> bytes:
        found = _language_of(body, 0, _READ_BYTES)
        if found is None:
            return b""
        code = OURS if found[1].decode().lower() in self._wanted else FOREIGN
        return pack_mark(self._side.pld_key(self._side.pld_of(held.host)), code, 1)
