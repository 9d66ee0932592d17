"""Installs the annex's middleware, which passes pages to a renderer."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl.features.rendering.settings import RenderConfig
from bigcrawl.given import import_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bigcrawl.config import Config

ORDER: Final = 540
"""Bodies are unpacked, and redirects and retries are done; a page that has not changed is not rendered."""

ANNEX: Final = "bigcrawl_rendering"
_SETTING: Final = "BIGCRAWL_RENDER"


def check(config: Config) -> None:
    """Raise ConfigError if a setting is wrong, or this machine lacks what the renderer needs."""
    if find_spec(ANNEX) is None:
        raise ConfigError(f"{_SETTING} needs {ANNEX}, which is not installed: pip install bigcrawl")
    import_object(_SETTING, f"{ANNEX}.requirements.check_requirements")(config.feature_config(RenderConfig))


def middlewares_of(config: Config) -> Mapping[type, int]:
    return {import_object(_SETTING, f"{ANNEX}.middleware.RenderMiddleware"): ORDER}
