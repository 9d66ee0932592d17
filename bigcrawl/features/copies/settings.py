"""The settings of the search for copies."""

from __future__ import annotations

from typing import Final

from bigcrawl.setting_group import Group, setting


class CopyConfig(Group):
    """Which copies the crawl looks for: `off`, `exact` or `near`."""

    seen: str = setting(
        "BIGCRAWL_CONTENT_SEEN",
        "exact",
        "Which copies of pages the crawl knows, over all nodes and runs: none, pages with the body of another, or also "
        "those with nearly its text. They are counted and listed, and fetched and stored like others. See "
        "docs/copies.md.",
        choices=("off", "exact", "near"),
        alike=True,
        title="Copies of pages",
    )


CONFIG: Final = CopyConfig
