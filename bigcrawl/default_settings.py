"""All settings by group, in the order of docs/settings.md, which `make docs` writes from them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from bigcrawl.config import BY_NAME, Config

if TYPE_CHECKING:
    from bigcrawl.table_rows import Setting

__all__ = ["BY_NAME", "MATTER_MOST", "SETTINGS", "TABLE"]

_groups: dict[str, list[Setting]] = {}
for _title, _row in Config.rows():  # a group comes where its last settings are
    _groups[_title] = [*_groups.pop(_title, ()), _row]

SETTINGS: tuple[Setting, ...] = tuple(row for rows in _groups.values() for row in rows)
# A string is the title of the group that follows.
TABLE: tuple[Setting | str, ...] = tuple(chain.from_iterable((title, *rows) for title, rows in _groups.items()))

# The ten that most crawls touch: who crawls, where things are, how far and how fast. They open the page.
MATTER_MOST = (
    "BIGCRAWL_CONTACT",
    "BIGCRAWL_CRAWL",
    "BIGCRAWL_STATE_DIR",
    "BIGCRAWL_WARC_DIR",
    "BIGCRAWL_REDIS_URL",
    "BIGCRAWL_MAX_PAGES",
    "BIGCRAWL_HOST_DELAY",
    "BIGCRAWL_SPEED",
    "BIGCRAWL_BLACKLIST",
    "BIGCRAWL_BUDGET_POLICY",
)
