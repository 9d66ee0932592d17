"""The settings of requisites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.setting_group import Group, setting

if TYPE_CHECKING:
    from bigcrawl.config import Config


class RequisiteConfig(Group):
    """Where a page's requisites may be (`off`, `host`, `pld` or `any`), and how many are fetched per page."""

    scope: str = setting(
        "BIGCRAWL_REQUISITES",
        "off",
        "Which pictures, styles, fonts and scripts that a page needs are fetched soon after it, and stored: none, "
        "those on its host, on its pay-level domain, or anywhere. See docs/guide/replay.md.",
        choices=("off", "host", "pld", "any"),
        alike=True,
        title="Requisites of pages",
    )
    page_max: int = setting(
        "BIGCRAWL_REQUISITES_MAX",
        500,
        "With BIGCRAWL_REQUISITES: how many requisites of a page, a style sheet or a module are fetched.",
        (1, 20_000, "URLs"),
        alike=True,
    )


CONFIG: Final = RequisiteConfig


def is_on(config: Config) -> bool:
    return config.feature_config(RequisiteConfig).scope != "off"
