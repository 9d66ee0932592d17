"""The setting of languages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.table_rows import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS: Final = (
    "Languages",
    Setting("BIGCRAWL_LANGUAGES", [], list, "Languages that the crawl is about, such as `en`. Empty: all of them."),
)


@dataclass(frozen=True, slots=True)
class LanguageConfig:
    """The languages that are asked for; empty for all."""

    wanted: tuple[str, ...]


def read(value: Mapping[str, Any]) -> LanguageConfig:
    return LanguageConfig(tuple(value["BIGCRAWL_LANGUAGES"]))
