"""The settings of the search for copies."""

from __future__ import annotations

from typing import Final

from bigcrawl.content.sketched import ALIKE
from bigcrawl.setting_group import Group, setting


class CopyConfig(Group):
    """Which copies to look for (`off`, `exact` or `near`), and the least similarity of near copies."""

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
    near_similarity: float = setting(
        "BIGCRAWL_NEAR_SIMILARITY",
        ALIKE,
        "How similar two pages must look to be near copies. A sketch shows a similarity near 0.9 to within 0.012: "
        "the higher, the fewer pages below 0.9 are taken for near copies, and the more above it are not. See "
        "docs/copies.md.",
        (0.8, 1.0, "Jaccard"),
        alike=True,
    )


CONFIG: Final = CopyConfig
