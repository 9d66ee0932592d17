"""The setting of languages."""

from __future__ import annotations

from typing import Final

from bigcrawl.setting_group import Group, setting


class LanguageConfig(Group):
    """The languages that are asked for; empty for all."""

    wanted: tuple[str, ...] = setting(
        "BIGCRAWL_LANGUAGES",
        [],
        "Languages that the crawl is about, such as `en`. Empty: all of them.",
        title="Languages",
    )


CONFIG: Final = LanguageConfig
